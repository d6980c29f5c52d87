import os

# Newer versions of ONNX Runtime have telemetry on by default. They read this when they are imported,
# which is why it is not in the settings.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
