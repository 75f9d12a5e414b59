"""What the end-to-end cases stand on: processes, certificates, the API client, the cluster."""
