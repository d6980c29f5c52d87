import os

# ONNX Runtime reports its use and the names of models to Microsoft otherwise. It reads this when it
# is imported, which is why this is not in the settings.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
