//! What is known of a family of decoders by its name.

use tectum::Result;
use tectum_graph::Graph;

use super::config::ConfigFile;
use super::decoder_graph::DecoderSizes;

/// The parameter that gives scores where the table of tokens does not.
pub(super) const HEAD: &str = "lm_head.weight";

/// A family, next to its graph; `families.rs` lists all.
#[cfg_attr(
    not(feature = "gguf"),
    allow(dead_code, reason = "only GGUF files are read by their names")
)]
#[derive(Debug)]
pub(super) struct Family {
    /// Its name in `config.json` and in GGUF files.
    pub name: &'static str,
    /// Prefix of parameter names that files with only the inner model lack.
    pub prefix: &'static str,
    /// The table of tokens, which every file has, without the prefix.
    pub first_tensor: &'static str,
    /// What precedes the number of a layer in parameter names.
    pub layers: &'static str,
    /// Reads and checks a `config.json`.
    pub read: fn(&ConfigFile) -> Result<Box<dyn DecoderModel>>,
    /// Reads the keys of a GGUF file that not all families have.
    pub read_gguf: fn(&dyn GgufKeys, DecoderSizes) -> Result<Box<dyn DecoderModel>>,
    /// The activation of GGUF files, which do not name it, by Hugging Face's name.
    pub gguf_activation: &'static str,
    /// Parts of parameter names, and GGUF's.
    pub gguf_names: &'static [(&'static str, &'static str)],
    /// How GGUF orders the elements of a parameter.
    pub gguf_order: fn(&DecoderSizes, parameter: &str) -> TensorOrder,
}

/// A decoder of a family.
pub(super) trait DecoderModel {
    /// Its sizes.
    fn sizes(&self) -> &DecoderSizes;

    /// Its sizes, to be changed before the graph is built.
    fn sizes_mut(&mut self) -> &mut DecoderSizes;

    /// The graph, as [`DecoderGraph`](super::decoder_graph::DecoderGraph) describes it.
    ///
    /// # Errors
    /// `Invalid` for inconsistent sizes.
    fn build(&self) -> Result<Graph>;
}

/// The keys of a family in a GGUF file.
pub(super) trait GgufKeys {
    /// A number that must be present.
    fn needed_number(&self, key: &str) -> Result<f32>;

    /// A number.
    fn number(&self, key: &str) -> Result<Option<f32>>;

    /// Whether the file has a tensor.
    fn has_tensor(&self, name: &str) -> bool;
}

/// How a tensor of a GGUF file is converted to a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TensorOrder {
    /// Unchanged.
    Same,
    /// For each of this many heads, rows of the first and second half alternate.
    Interleaved(usize),
    /// Rows and columns are swapped.
    Transposed,
}

#[cfg(feature = "gguf")]
impl Family {
    /// The name in a GGUF file of the tensor that holds a parameter.
    pub fn gguf_tensor(&self, parameter: &str) -> String {
        let inner = parameter.strip_prefix(self.prefix).unwrap_or(parameter);
        let (layer, rest) = match inner
            .strip_prefix(self.layers)
            .and_then(|rest| rest.split_once('.'))
        {
            Some((layer, rest)) => (format!("blk.{layer}."), rest),
            None => (String::new(), inner),
        };
        let (stem, kind) = rest.rsplit_once('.').unwrap_or((rest, ""));
        let name = self
            .gguf_names
            .iter()
            .find(|(ours, _)| *ours == stem)
            .map_or(stem, |(_, theirs)| theirs);
        format!("{layer}{name}.{kind}")
    }
}
