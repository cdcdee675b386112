#!/usr/bin/env bash
# Pillow opens a grey PNG of 16 bits, such as an X-ray or a depth map, for ViTImageProcessor. One would guess that the
# 65,536 levels are scaled to 256. Pillow's conversion to RGB clips them at 255. So a ramp from black to white becomes
# white except for the darkest 0.4 %, and the model sees two values.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python transformers==5.24.0 pillow==13.0.0 numpy==2.4.6
python/bin/python - <<'PY'
import numpy
from PIL import Image
from transformers import ViTImageProcessor

ramp = numpy.linspace(0, 65535, 256).reshape(16, 16).astype("uint16")
Image.fromarray(ramp).save("ramp.png")
processor = ViTImageProcessor(size={"height": 16, "width": 16}, do_normalize=False)
pixels = processor(Image.open("ramp.png").convert("RGB"), return_tensors="np")["pixel_values"]
print(type(processor).__name__, "values:", numpy.unique(pixels), "white:", f"{(pixels == 1).mean():.1%}")
assert set(numpy.unique(pixels)) == {0.0, 1.0} and (pixels == 1).mean() > 0.99
PY
