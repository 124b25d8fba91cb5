"""Workflows, compliance, the actor-critic, rollouts, PPO and the training loop."""
