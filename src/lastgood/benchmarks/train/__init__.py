"""`lastgood bench train`: one training loop, once without checkpoints and once with each way to save them.

options ─▶ plan of cells ─▶ each cell in a process of its own ─▶ medians over rounds ─▶ table, JSON, figure
                             job · contender · loop
"""
