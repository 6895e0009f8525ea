"""How much of the machines' time becomes kept work, when they are taken away as a trace says. Standard library only."""
