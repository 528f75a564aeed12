"""Encoders and decoders: message data, rows and parameters of SQL, fields and answers of HTTP."""
