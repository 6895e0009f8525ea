"""`lastgood tune`: profile this machine and job, recommend a setting for an overhead budget, check it."""
