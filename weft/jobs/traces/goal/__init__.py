"""GOAL, the group operation assembly language (Hoefler, Siebert, Lumsdaine 2009), as LogGOPSim and ATLAHS read it."""
