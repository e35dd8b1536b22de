"""Alarms that leave the service: by webhook, e-mail and MQTT, once each, or marked as doubtful."""
