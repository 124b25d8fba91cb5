"""GP-UCB over orders, ranking, and executors of trainings: processes, Ray."""
