"""The encoder's rows of `tectum bench infer` in PyTorch: Hugging Face's BertModel with scaled_dot_product_attention, mean pooling and
normalisation, by eager calls or by torch.compile with weights as constants, whichever is faster. torch_rows.py serves them."""

import torch

from minilm_folder import MODEL, demand
from protocol import fastest, row


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import BertModel

        self.model = BertModel.from_pretrained(MODEL, attn_implementation="sdpa", add_pooling_layer=False)

    def forward(self, ids):
        return torch.nn.functional.normalize(self.model(input_ids=ids).last_hidden_state.mean(1))


def frozen(encoder, ids, mode=None):
    """A call of the compiled encoder. Freezing makes the weights constants, packed for the products."""
    import torch._inductor.config as inductor

    def make():
        with torch.inference_mode(), inductor.patch(freezing=True):
            compiled = torch.compile(encoder, dynamic=False, mode=mode)
            compiled(ids)

        def call():
            with torch.inference_mode(), inductor.patch(freezing=True):
                return compiled(ids)

        return call

    return make


@row("minilm", 2, "transformers.BertModel, sdpa, mean, normalize", types=["float32"])
def minilm(shape):
    demand()
    batch, time = shape.sizes
    encoder = Encoder().eval()
    ids = (1000 + (torch.arange(batch * time) * 7919) % 20000).reshape(batch, time)

    def eager():
        with torch.inference_mode():
            return encoder(ids)

    return fastest(shape, {
        "eager calls": lambda: eager,
        "torch.compile with freezing": frozen(encoder, ids),
        "torch.compile with freezing, max-autotune": frozen(encoder, ids, "max-autotune-no-cudagraphs"),
    })
