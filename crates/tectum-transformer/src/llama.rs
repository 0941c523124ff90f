//! The decoders of Llama and of Qwen, which differ only in biases of the queries, keys and values
//! (Qwen2) and their norms by head (Qwen3): Touvron et al., *LLaMA: Open and Efficient Foundation
//! Language Models*, <https://arxiv.org/abs/2302.13971>; *Qwen2 Technical Report*, <https://arxiv.org/abs/2407.10671>;
//! *Qwen3 Technical Report*, <https://arxiv.org/abs/2505.09388>. Reference implementations:
//! <https://github.com/huggingface/transformers/blob/main/src/transformers/models/llama/modeling_llama.py>, and `qwen2/modeling_qwen2.py`,
//! `qwen3/modeling_qwen3.py` next to it.

use serde::Deserialize;
use tectum::{Error, Result};
use tectum_graph::{Dim, Graph, Node};

use super::config::{ConfigFile, activation};
use super::decoder_graph::{DecoderGraph, DecoderSizes};
use super::family::{DecoderModel, Family, HEAD, TensorOrder};

const PREFIX: &str = "model.";

/// The family of Llama. llama.cpp rotates adjacent columns of its queries and keys, and orders them
/// so in its files; Hugging Face rotates columns of two halves.
pub(super) const LLAMA: Family = Family {
    name: "llama",
    gguf_order: |sizes, parameter| match parameter {
        queries if queries.contains(".q_proj.") => TensorOrder::Interleaved(sizes.heads),
        keys if keys.contains(".k_proj.") => TensorOrder::Interleaved(sizes.kv_heads),
        _ => TensorOrder::Same,
    },
    ..QWEN2
};

/// The family of Qwen2.
pub(super) const QWEN2: Family = Family {
    name: "qwen2",
    prefix: PREFIX,
    first_tensor: "embed_tokens.weight",
    layers: "layers.",
    read: |config| Ok(Box::new(Llama::read(config)?)),
    read_gguf: |keys, sizes| {
        Ok(Box::new(Llama {
            epsilon: keys.needed_number("attention.layer_norm_rms_epsilon")?,
            rope_theta: keys.number("rope.freq_base")?.unwrap_or(ROPE_THETA),
            has_biases: keys.has_tensor("blk.0.attn_q.bias"),
            has_output_bias: keys.has_tensor("blk.0.attn_output.bias"),
            has_head_norms: sizes.family == QWEN3.name,
            sizes,
        }))
    },
    gguf_activation: "silu",
    gguf_names: &[
        ("embed_tokens", "token_embd"),
        ("norm", "output_norm"),
        ("lm_head", "output"),
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ],
    gguf_order: |_, _| TensorOrder::Same,
};

/// The family of Qwen3.
pub(super) const QWEN3: Family = Family {
    name: "qwen3",
    ..QWEN2
};

/// The default base of the rotations, as in the reference implementations.
const ROPE_THETA: f32 = 10_000.0;

/// `config.json` of the families.
#[derive(Debug, Deserialize)]
struct Config {
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    #[serde(default)]
    num_key_value_heads: Option<usize>,
    #[serde(default)]
    head_dim: Option<usize>,
    hidden_act: String,
    max_position_embeddings: usize,
    rms_norm_eps: f32,
    #[serde(default)]
    rope_theta: Option<f32>,
    #[serde(default)]
    rope_scaling: Option<Rope>,
    #[serde(default)]
    rope_parameters: Option<Rope>,
    #[serde(default)]
    tie_word_embeddings: bool,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    #[serde(default)]
    use_sliding_window: bool,
    #[serde(default)]
    layer_types: Option<Vec<String>>,
    #[serde(default)]
    quantization_config: Option<serde_json::Value>,
}

/// Parameters of rotary position embeddings.
#[derive(Debug, Deserialize)]
struct Rope {
    #[serde(default)]
    rope_type: Option<String>,
    /// The older name.
    #[serde(default, rename = "type")]
    older_type: Option<String>,
    #[serde(default)]
    rope_theta: Option<f32>,
    #[serde(default)]
    partial_rotary_factor: Option<f32>,
}

/// A decoder of one of the families.
#[derive(Debug)]
struct Llama {
    sizes: DecoderSizes,
    epsilon: f32,
    rope_theta: f32,
    /// Whether queries, keys and values have biases.
    has_biases: bool,
    /// Whether the product after attention has a bias.
    has_output_bias: bool,
    /// Whether queries and keys are normalised by head.
    has_head_norms: bool,
}

impl DecoderModel for Llama {
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
            &format!("{PREFIX}embed_tokens.weight"),
            [self.sizes.vocab_size, width],
        )?;
        let mut x = d.g.gather(words, d.ids)?;
        for layer in 0..self.sizes.layers {
            x = self.layer(&mut d, layer, x)?;
        }
        let last = d.select_rows(x)?;
        let last = self.norm(&mut d, &format!("{PREFIX}norm"), last, width)?;
        let table = if self.sizes.tied_embeddings {
            words
        } else {
            d.g.parameter(HEAD, [self.sizes.vocab_size, width])?
        };
        d.finish(last, table)
    }
}

impl Llama {
    /// Parses and checks a `config.json`.
    ///
    /// # Errors
    /// `Data` for content that is not a configuration; `Unsupported`, naming the key of an
    /// unsupported setting; `Invalid` for inconsistent sizes.
    fn read(file: &ConfigFile) -> Result<Llama> {
        let (path, config) = (&file.path, file.parse::<Config>()?);
        let family = file.family()?.unwrap_or_default();
        config.check().map_err(|error| error.at(path.display()))?;
        let rope_theta = config
            .rope_theta()
            .map_err(|error| error.at(path.display()))?;
        let heads = config.num_attention_heads;
        let sizes = DecoderSizes {
            vocab_size: config.vocab_size,
            width: config.hidden_size,
            layers: config.num_hidden_layers,
            heads,
            kv_heads: config.num_key_value_heads.unwrap_or(heads),
            head_width: config
                .head_dim
                .or(config.hidden_size.checked_div(heads))
                .unwrap_or(0),
            ffn_width: config.intermediate_size,
            activation: config.hidden_act.clone(),
            context: config.max_position_embeddings,
            tied_embeddings: config.tie_word_embeddings,
            family,
        };
        let (is_qwen2, is_qwen3) = (sizes.family == "qwen2", sizes.family == "qwen3");
        Ok(Llama {
            epsilon: config.rms_norm_eps,
            rope_theta,
            has_biases: is_qwen2 || config.attention_bias,
            has_output_bias: !is_qwen2 && config.attention_bias,
            has_head_norms: is_qwen3,
            sizes,
        })
    }

    fn layer(&self, d: &mut DecoderGraph<'_>, layer: usize, x: Node) -> Result<Node> {
        let (name, width, middle) = (
            format!("{PREFIX}layers.{layer}"),
            self.sizes.width,
            self.sizes.ffn_width,
        );
        let normed = self.norm(d, &format!("{name}.input_layernorm"), x, width)?;
        let operands = self.operands(d, &format!("{name}.self_attn"), normed)?;
        let attended = d.attend(layer, operands)?;
        let attended_width = self.sizes.heads * self.sizes.head_width;
        let mut output = self.product(
            d,
            &format!("{name}.self_attn.o_proj"),
            attended,
            [width, attended_width],
        )?;
        if self.has_output_bias {
            let bias =
                d.g.parameter(&format!("{name}.self_attn.o_proj.bias"), [width])?;
            output = d.g.add(output, bias)?;
        }
        let x = d.g.add(output, x)?;

        let normed = self.norm(d, &format!("{name}.post_attention_layernorm"), x, width)?;
        let gate = self.product(d, &format!("{name}.mlp.gate_proj"), normed, [middle, width])?;
        let gate =
            d.g.activate(gate, activation("hidden_act", &self.sizes.activation)?)?;
        let up = self.product(d, &format!("{name}.mlp.up_proj"), normed, [middle, width])?;
        let gated = d.g.mul(gate, up)?;
        let output = self.product(d, &format!("{name}.mlp.down_proj"), gated, [width, middle])?;
        d.g.add(output, x)
    }

    /// Queries and keys, normalised by head if the family does so and rotated by their positions,
    /// and values.
    fn operands(&self, d: &mut DecoderGraph<'_>, name: &str, x: Node) -> Result<[Node; 3]> {
        let (width, head_width) = (self.sizes.width, self.sizes.head_width);
        let parts = [
            ("q", self.sizes.heads),
            ("k", self.sizes.kv_heads),
            ("v", self.sizes.kv_heads),
        ];
        // Weights, then biases, adjacent: the three products become one without copies.
        let (mut weights, mut operands) = (Vec::new(), [x; 3]);
        for (part, heads) in parts {
            weights.push(d.g.parameter(
                &format!("{name}.{part}_proj.weight"),
                [heads * head_width, width],
            )?);
        }
        for (index, ((part, heads), weight)) in parts.into_iter().zip(weights).enumerate() {
            operands[index] = match self.has_biases {
                true => {
                    let bias =
                        d.g.parameter(&format!("{name}.{part}_proj.bias"), [heads * head_width])?;
                    d.affine(x, weight.transpose(), bias)?
                }
                false => d.g.matmul(x, weight.transpose())?,
            };
        }
        for ((part, heads), operand) in parts.into_iter().zip(&mut operands).take(2) {
            if self.has_head_norms {
                let by_head = d.g.reshape(
                    *operand,
                    [Dim::from('B'), 'T'.into(), heads.into(), head_width.into()],
                )?;
                let normed = self.norm(d, &format!("{name}.{part}_norm"), by_head, head_width)?;
                *operand = d.g.reshape(
                    normed,
                    [Dim::from('B'), 'T'.into(), Dim::from(heads * head_width)],
                )?;
            }
            *operand = d.g.rotary(*operand, d.positions, heads, self.rope_theta)?;
        }
        Ok(operands)
    }

    /// x·Wᵀ for W [out, in], as PyTorch stores it.
    fn product(
        &self,
        d: &mut DecoderGraph<'_>,
        name: &str,
        x: Node,
        [out, inner]: [usize; 2],
    ) -> Result<Node> {
        let weight = d.g.parameter(&format!("{name}.weight"), [out, inner])?;
        d.g.matmul(x, weight.transpose())
    }

    fn norm(&self, d: &mut DecoderGraph<'_>, name: &str, x: Node, width: usize) -> Result<Node> {
        let gain = d.g.parameter(&format!("{name}.weight"), [width])?;
        d.g.rms_norm(x, gain, self.epsilon)
    }
}

impl Config {
    /// Rejects unsupported settings by key.
    fn check(&self) -> Result<()> {
        activation("hidden_act", &self.hidden_act)?;
        let refused = [
            (self.mlp_bias, "mlp_bias true; false is supported"),
            (
                self.use_sliding_window,
                "use_sliding_window true; false is supported",
            ),
            (
                self.quantization_config.is_some(),
                "quantization_config; weights of F32, F16 and BF16 are supported",
            ),
        ];
        if let Some((_, what)) = refused.into_iter().find(|(is_set, _)| *is_set) {
            return Err(Error::unsupported(what));
        }
        match self
            .layer_types
            .iter()
            .flatten()
            .find(|kind| *kind != "full_attention")
        {
            Some(kind) => Err(Error::unsupported(format!(
                "layer_types {kind:?}; \"full_attention\" is supported"
            ))),
            None => Ok(()),
        }
    }

    /// The base of the rotations, from this or an older version of the configuration.
    fn rope_theta(&self) -> Result<f32> {
        for (key, rope) in [
            ("rope_scaling", &self.rope_scaling),
            ("rope_parameters", &self.rope_parameters),
        ] {
            let Some(rope) = rope else { continue };
            let kind = rope
                .rope_type
                .as_deref()
                .or(rope.older_type.as_deref())
                .unwrap_or("default");
            if kind != "default" {
                return Err(Error::unsupported(format!(
                    "{key} of type {kind:?}; \"default\" is supported"
                )));
            }
            if rope
                .partial_rotary_factor
                .is_some_and(|factor| factor != 1.0)
            {
                return Err(Error::unsupported(format!(
                    "{key}: partial_rotary_factor {:?}; 1 is supported",
                    rope.partial_rotary_factor
                )));
            }
        }
        let inner = self.rope_parameters.as_ref().map(|rope| rope.rope_theta);
        match (inner, self.rope_theta) {
            (Some(None), None) => Err(Error::unsupported(
                "rope_parameters without rope_theta: parameters by kind of layer are not supported",
            )),
            (Some(Some(theta)), _) | (_, Some(theta)) => Ok(theta),
            (None, None) => Ok(ROPE_THETA),
        }
    }
}
