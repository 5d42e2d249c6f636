"""What runs the flows: deployments, automations, hooks, the product on one machine."""
