"""Models of tables without inputs."""
