"""`postbus observe`: the bus on a screen, like htop."""
