"""The encoder's rows of `tectum bench infer` in PyTorch: Hugging Face's BertModel with scaled_dot_product_attention, mean pooling and
normalisation. torch_rows.py serves them."""

import torch

from minilm_folder import MODEL, demand
from protocol import row


@row("minilm", 2, "transformers.BertModel, sdpa, mean, normalize", types=["float32"])
def minilm(shape):
    from transformers import BertModel

    demand()
    batch, time = shape.sizes
    model = BertModel.from_pretrained(MODEL, attn_implementation="sdpa", add_pooling_layer=False).eval()
    ids = (1000 + (torch.arange(batch * time) * 7919) % 20000).reshape(batch, time)

    def run():
        with torch.inference_mode():
            return torch.nn.functional.normalize(model(input_ids=ids).last_hidden_state.mean(1))

    return run
