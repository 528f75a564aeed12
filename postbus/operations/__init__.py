"""Each operation of the bus, once: its SQL, its HTTP request, and how both are decoded."""
