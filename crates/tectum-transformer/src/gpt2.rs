//! The decoder of GPT-2: Radford et al., *Language Models are Unsupervised Multitask Learners*,
//! <https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf>. Reference implementation:
//! <https://github.com/huggingface/transformers/blob/main/src/transformers/models/gpt2/modeling_gpt2.py>.

use serde::Deserialize;
use tectum::{Error, Result};
use tectum_graph::{Graph, Node};

use super::config::{ConfigFile, activation};
use super::decoder_graph::{DecoderGraph, DecoderSizes};
use super::family::{DecoderModel, Family, HEAD, TensorOrder};

/// `config.json` of the family.
#[derive(Debug, Deserialize)]
struct Config {
    vocab_size: usize,
    n_positions: usize,
    n_embd: usize,
    n_layer: usize,
    n_head: usize,
    #[serde(default)]
    n_inner: Option<usize>,
    activation_function: String,
    layer_norm_epsilon: f32,
    #[serde(default = "default_true")]
    tie_word_embeddings: bool,
    #[serde(default = "default_true")]
    scale_attn_weights: bool,
    #[serde(default)]
    scale_attn_by_inverse_layer_idx: bool,
    #[serde(default)]
    add_cross_attention: bool,
    #[serde(default)]
    quantization_config: Option<serde_json::Value>,
}

fn default_true() -> bool {
    true
}

/// A decoder of the family.
#[derive(Debug)]
struct Gpt2 {
    sizes: DecoderSizes,
    epsilon: f32,
}

const PREFIX: &str = "transformer.";

/// The family.
pub(super) const GPT2: Family = Family {
    name: "gpt2",
    prefix: PREFIX,
    first_tensor: "wte.weight",
    layers: "h.",
    read: |config| Ok(Box::new(Gpt2::read(config)?)),
    read_gguf: |keys, sizes| {
        let DecoderSizes {
            width,
            heads,
            head_width,
            ..
        } = sizes;
        if heads.checked_mul(head_width) != Some(width) {
            return Err(Error::invalid(format!(
                "gpt2.embedding_length {width} in {heads} heads"
            )));
        }
        Ok(Box::new(Gpt2 {
            epsilon: keys.needed_number("attention.layer_norm_epsilon")?,
            sizes,
        }))
    },
    gguf_activation: "gelu_new",
    gguf_names: &[
        ("wte", "token_embd"),
        ("wpe", "position_embd"),
        ("lm_head", "output"),
        ("ln_f", "output_norm"),
        ("ln_1", "attn_norm"),
        ("attn.c_attn", "attn_qkv"),
        ("attn.c_proj", "attn_output"),
        ("ln_2", "ffn_norm"),
        ("mlp.c_fc", "ffn_up"),
        ("mlp.c_proj", "ffn_down"),
    ],
    // Only Hugging Face stores the weights as [in, out].
    gguf_order: |_, parameter| {
        if parameter.contains(".c_") && parameter.ends_with(".weight") {
            TensorOrder::Transposed
        } else {
            TensorOrder::Same
        }
    },
};

impl DecoderModel for Gpt2 {
    fn sizes(&self) -> &DecoderSizes {
        &self.sizes
    }

    fn sizes_mut(&mut self) -> &mut DecoderSizes {
        &mut self.sizes
    }

    fn build(&self) -> Result<Graph> {
        let mut d = DecoderGraph::new(&self.sizes)?;
        let width = self.sizes.width;
        let words = d.g.parameter(
            &format!("{PREFIX}wte.weight"),
            [self.sizes.vocab_size, width],
        )?;
        let positions =
            d.g.parameter(&format!("{PREFIX}wpe.weight"), [self.sizes.context, width])?;
        let word = d.g.gather(words, d.ids)?;
        let position = d.g.gather(positions, d.positions)?;
        let mut x = d.g.add(word, position)?;
        for layer in 0..self.sizes.layers {
            x = self.layer(&mut d, layer, x)?;
        }
        let last = d.select_rows(x)?;
        let last = self.norm(&mut d, &format!("{PREFIX}ln_f"), last)?;
        let table = if self.sizes.tied_embeddings {
            words
        } else {
            d.g.parameter(HEAD, [self.sizes.vocab_size, width])?
        };
        d.finish(last, table)
    }
}

impl Gpt2 {
    /// Parses and checks a `config.json`.
    ///
    /// # Errors
    /// `Data` for content that is not a configuration; `Unsupported`, naming the key of an
    /// unsupported setting.
    fn read(file: &ConfigFile) -> Result<Gpt2> {
        let (path, config) = (&file.path, file.parse::<Config>()?);
        let unsupported =
            |what: String| Err(Error::unsupported(format!("{}: {what}", path.display())));
        if !config.scale_attn_weights {
            return unsupported("scale_attn_weights false; true is supported".to_owned());
        }
        if config.scale_attn_by_inverse_layer_idx {
            return unsupported(
                "scale_attn_by_inverse_layer_idx true; false is supported".to_owned(),
            );
        }
        if config.add_cross_attention {
            return unsupported("add_cross_attention true; false is supported".to_owned());
        }
        if config.quantization_config.is_some() {
            return unsupported(
                "quantization_config; weights of F32, F16 and BF16 are supported".to_owned(),
            );
        }
        activation("activation_function", &config.activation_function)
            .map_err(|error| error.at(path.display()))?;
        let sizes = DecoderSizes {
            family: "gpt2".to_owned(),
            vocab_size: config.vocab_size,
            width: config.n_embd,
            layers: config.n_layer,
            heads: config.n_head,
            kv_heads: config.n_head,
            head_width: config.n_embd.checked_div(config.n_head).unwrap_or(0),
            ffn_width: config.n_inner.unwrap_or(config.n_embd.saturating_mul(4)),
            activation: config.activation_function.clone(),
            context: config.n_positions,
            tied_embeddings: config.tie_word_embeddings,
        };
        if sizes.heads * sizes.head_width != sizes.width {
            return Err(Error::invalid(format!(
                "{}: n_embd {} in {} heads",
                path.display(),
                sizes.width,
                sizes.heads
            )));
        }
        Ok(Gpt2 {
            sizes,
            epsilon: config.layer_norm_epsilon,
        })
    }

    fn layer(&self, d: &mut DecoderGraph<'_>, layer: usize, x: Node) -> Result<Node> {
        let (name, width) = (format!("{PREFIX}h.{layer}"), self.sizes.width);
        let normed = self.norm(d, &format!("{name}.ln_1"), x)?;
        let product = self.dense(
            d,
            &format!("{name}.attn.c_attn"),
            normed,
            [width, 3 * width],
        )?;
        let mut operands = [product; 3];
        for (index, operand) in operands.iter_mut().enumerate() {
            *operand = d.g.slice(product, 2, index * width, width)?;
        }
        let attended = d.attend(layer, operands)?;
        let output = self.dense(d, &format!("{name}.attn.c_proj"), attended, [width, width])?;
        let x = d.g.add(output, x)?;

        let normed = self.norm(d, &format!("{name}.ln_2"), x)?;
        let middle = self.dense(
            d,
            &format!("{name}.mlp.c_fc"),
            normed,
            [width, self.sizes.ffn_width],
        )?;
        let middle = d.g.activate(
            middle,
            activation("activation_function", &self.sizes.activation)?,
        )?;
        let output = self.dense(
            d,
            &format!("{name}.mlp.c_proj"),
            middle,
            [self.sizes.ffn_width, width],
        )?;
        d.g.add(output, x)
    }

    /// x·W + b for W [in, out], as the family stores it.
    fn dense(
        &self,
        d: &mut DecoderGraph<'_>,
        name: &str,
        x: Node,
        [inner, out]: [usize; 2],
    ) -> Result<Node> {
        let weight = d.g.parameter(&format!("{name}.weight"), [inner, out])?;
        let bias = d.g.parameter(&format!("{name}.bias"), [out])?;
        d.affine(x, weight, bias)
    }

    fn norm(&self, d: &mut DecoderGraph<'_>, name: &str, x: Node) -> Result<Node> {
        let gain =
            d.g.parameter(&format!("{name}.weight"), [self.sizes.width])?;
        let bias = d.g.parameter(&format!("{name}.bias"), [self.sizes.width])?;
        d.g.layer_norm(x, gain, bias, self.epsilon)
    }
}
