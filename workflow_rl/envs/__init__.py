"""Both simulators behind Gymnasium; what blue sees and remembers."""
