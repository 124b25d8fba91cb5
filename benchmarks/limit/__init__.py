"""What a defender that sees everything could reach: exact against B_line, estimated against Meander."""
