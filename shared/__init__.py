import os

# Newer versions of ONNX Runtime have telemetry on by default. This is read when it is imported,
# which is why it is not in the settings.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
