//! The steps after an encoder, from the files that sentence-transformers keeps in a model's folder:
//! pooling, dense layers, norms, truncation, and the prompt before a text.
//! <https://github.com/huggingface/sentence-transformers> (Reimers and Gurevych, <https://arxiv.org/abs/1908.10084>).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use tectum::{Activation, Error, Result};

use super::config::read_json;

/// The list of modules: the encoder, then the steps after it.
const MODULES: &str = "modules.json";
/// Settings of the whole model.
const SETTINGS: &str = "config_sentence_transformers.json";
/// Settings of the encoder; the first file that exists is read.
const ENCODER_SETTINGS: [&str; 7] = [
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
];
/// Settings of the tokenizer.
const TOKENIZER_SETTINGS: &str = "tokenizer_config.json";
/// The modules that are applied.
const SUPPORTED: &str = "supported of sentence_transformers are Transformer, Pooling, then any of Dense, LayerNorm, Dropout and Normalize, in this order";
/// The name under which modules pass on the vector of a text.
const VECTOR: &str = "sentence_embedding";

/// How the vectors of a text's tokens x₁ to xₙ are pooled to one vector. The display is the name in
/// sentence-transformers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// x₁, that of `[CLS]`.
    First,
    /// The maximum of each element.
    Max,
    /// Σ xᵢ / n.
    Mean,
    /// Σ xᵢ / √n.
    MeanSqrtLen,
    /// Σ i·xᵢ / Σ i.
    WeightedMean,
    /// xₙ.
    Last,
}

impl Pooling {
    /// All, with the names and the older keys, in the order in which older files concatenate them.
    const ALL: [(Pooling, &'static str, &'static str); 6] = [
        (Pooling::First, "cls", "pooling_mode_cls_token"),
        (Pooling::Max, "max", "pooling_mode_max_tokens"),
        (Pooling::Mean, "mean", "pooling_mode_mean_tokens"),
        (
            Pooling::MeanSqrtLen,
            "mean_sqrt_len_tokens",
            "pooling_mode_mean_sqrt_len_tokens",
        ),
        (
            Pooling::WeightedMean,
            "weightedmean",
            "pooling_mode_weightedmean_tokens",
        ),
        (Pooling::Last, "lasttoken", "pooling_mode_lasttoken"),
    ];

    /// Writes the weights of a text's tokens, if the result is a weighted sum: all but the maximum
    /// are.
    pub(super) fn weights(self, to: &mut [f32]) {
        let count = to.len();
        let weight = |index: usize| match self {
            Pooling::First => f64::from(u8::from(index == 0)),
            Pooling::Last => f64::from(u8::from(index + 1 == count)),
            Pooling::Mean => 1.0 / count as f64,
            Pooling::MeanSqrtLen => 1.0 / (count as f64).sqrt(),
            Pooling::WeightedMean => 2.0 * (index + 1) as f64 / (count * (count + 1)) as f64,
            Pooling::Max => 0.0,
        };
        to.iter_mut()
            .enumerate()
            .for_each(|(index, to)| *to = weight(index) as f32);
    }
}

impl fmt::Display for Pooling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Pooling::ALL
            .iter()
            .find(|(pooling, ..)| pooling == self)
            .map_or("", |(_, name, _)| name);
        f.write_str(name)
    }
}

/// The steps after an encoder, and before it the changes of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Head {
    /// Their results are concatenated.
    pub poolings: Vec<Pooling>,
    /// The steps after pooling, in order.
    pub steps: Vec<HeadStep>,
    /// Numbers of the result.
    pub width: usize,
    /// What precedes every text.
    pub prompt: String,
    /// Whether texts are converted to lower case before they are tokenized.
    pub lowercase: bool,
    /// Maximum tokens of a text, if the folder defines it.
    pub max_tokens: Option<usize>,
}

/// A step on the vector of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum HeadStep {
    /// activation(x·Wᵀ + b).
    Dense(Dense),
    /// Layer norm, with the parameters of this folder.
    LayerNorm(String),
    /// x / |x|.
    Normalize,
    /// The first elements.
    Truncate(usize),
}

/// A dense layer, with the parameters of the folder `path`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dense {
    pub path: String,
    /// Numbers of the result, then of the operand.
    pub sizes: [usize; 2],
    pub has_bias: bool,
    pub activation: Activation,
    /// The activation's name in PyTorch.
    activation_name: String,
    /// Whether the operand is added to the result, by a second product if their sizes differ.
    pub has_residual: bool,
}

impl HeadStep {
    /// The folder of its parameters, if it has any.
    pub fn path(&self) -> Option<&str> {
        match self {
            HeadStep::Dense(dense) => Some(&dense.path),
            HeadStep::LayerNorm(path) => Some(path),
            HeadStep::Normalize | HeadStep::Truncate(_) => None,
        }
    }
}

impl fmt::Display for HeadStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeadStep::Dense(Dense {
                sizes: [out, inner],
                activation_name,
                ..
            }) => write!(f, "dense {inner} to {out} ({activation_name})"),
            HeadStep::LayerNorm(_) => f.write_str("layer norm"),
            HeadStep::Normalize => f.write_str("length 1"),
            HeadStep::Truncate(count) => write!(f, "the first {count} numbers"),
        }
    }
}

impl Head {
    /// Reads the steps after an encoder of vectors of `hidden` numbers; without `modules.json` mean
    /// and normalisation.
    ///
    /// # Errors
    /// `Io`; `Data` for a file that cannot be read or sizes that do not fit; `Unsupported`, naming
    /// file and key, for a module or a setting that is not applied here.
    pub fn read(folder: &Path, hidden: usize) -> Result<Head> {
        let (encoder, settings) = (EncoderSettings::read(folder)?, Settings::read(folder)?);
        let mut head = Head {
            poolings: vec![Pooling::Mean],
            steps: vec![HeadStep::Normalize],
            width: hidden,
            prompt: settings.prompt,
            lowercase: encoder.do_lower_case,
            max_tokens: encoder.max_seq_length,
        };
        if folder.join(MODULES).exists() {
            head.read_modules(folder, hidden)?;
        }
        if let Some(count) = settings.truncate_dim.filter(|count| *count < head.width) {
            head.steps.push(HeadStep::Truncate(count));
            head.width = count;
        }
        Ok(head)
    }

    /// The poolings that are weighted sums, in order.
    pub fn weighted(&self) -> impl Iterator<Item = Pooling> + Clone {
        self.poolings
            .iter()
            .copied()
            .filter(|pooling| *pooling != Pooling::Max)
    }

    /// A text as it is tokenized.
    pub fn prompted(&self, text: &str) -> String {
        let text = format!("{}{text}", self.prompt);
        if self.lowercase {
            text.chars().flat_map(char::to_lowercase).collect()
        } else {
            text
        }
    }

    fn read_modules(&mut self, folder: &Path, hidden: usize) -> Result<()> {
        let path = folder.join(MODULES);
        let modules: Vec<Module> = read_json(&path)?;
        let refused = |index: usize| {
            let found = modules.get(index).map_or_else(
                || "is missing".to_owned(),
                |module| format!("is {:?}", module.kind),
            );
            Error::unsupported(format!(
                "{}: module {} {found}; {SUPPORTED}",
                path.display(),
                index + 1
            ))
        };
        for (index, name) in ["Transformer", "Pooling"].into_iter().enumerate() {
            if modules.get(index).and_then(Module::name) != Some(name) {
                return Err(refused(index));
            }
        }
        if !modules[0].path.is_empty() {
            return Err(Error::unsupported(format!(
                "{}: the encoder is in the folder {:?}; an encoder in the model's folder itself is supported",
                path.display(),
                modules[0].path
            )));
        }
        let pooling: PoolingConfig = modules[1].config(folder)?;
        self.poolings = pooling
            .poolings(&self.prompt)
            .map_err(|error| error.at(modules[1].config_path(folder).display()))?;
        self.width = hidden.saturating_mul(self.poolings.len());
        self.steps.clear();
        for (index, module) in modules.iter().enumerate().skip(2) {
            match module.name() {
                // It only has an effect in training.
                Some("Dropout") => {}
                Some("Dense") => {
                    let dense = self.dense(folder, module)?;
                    self.width = dense.sizes[0];
                    self.steps.push(HeadStep::Dense(dense));
                }
                Some("LayerNorm") => {
                    let path = self.layer_norm(folder, module)?;
                    self.steps.push(HeadStep::LayerNorm(path));
                }
                Some("Normalize") => {
                    check_normalize(folder, module)?;
                    self.steps.push(HeadStep::Normalize);
                }
                _ => return Err(refused(index)),
            }
        }
        Ok(())
    }

    fn dense(&self, folder: &Path, module: &Module) -> Result<Dense> {
        let (config, path): (DenseConfig, _) = (module.config(folder)?, module.config_path(folder));
        config.names.check(&path)?;
        let (activation, name) = config
            .activation()
            .map_err(|error| error.at(path.display()))?;
        if config.in_features != self.width || config.out_features == 0 {
            return Err(Error::data(format!(
                "{}: in_features {}, out_features {}; the vector before it has {} numbers",
                path.display(),
                config.in_features,
                config.out_features,
                self.width
            )));
        }
        Ok(Dense {
            path: module.path.clone(),
            sizes: [config.out_features, config.in_features],
            has_bias: config.bias,
            activation,
            activation_name: name,
            has_residual: config.use_residual,
        })
    }

    fn layer_norm(&self, folder: &Path, module: &Module) -> Result<String> {
        let config: LayerNormConfig = module.config(folder)?;
        if config.dimension == self.width {
            return Ok(module.path.clone());
        }
        Err(Error::data(format!(
            "{}: dimension {}; the vector before it has {} numbers",
            module.config_path(folder).display(),
            config.dimension,
            self.width
        )))
    }
}

/// Checks what a normalisation reads and writes; older versions write no file for it.
fn check_normalize(folder: &Path, module: &Module) -> Result<()> {
    let path = module.config_path(folder);
    if path.exists() {
        module.config::<Names>(folder)?.check(&path)
    } else {
        Ok(())
    }
}

/// The folders of a model's modules, for those that list its files; none without a list that can be
/// read.
pub(super) fn module_folders(folder: &Path) -> Vec<PathBuf> {
    read_json::<Vec<Module>>(&folder.join(MODULES))
        .unwrap_or_default()
        .iter()
        .filter(|module| !module.path.is_empty() && module.is_inside())
        .map(|module| folder.join(&module.path))
        .collect()
}

/// An entry of `modules.json`.
#[derive(Deserialize)]
struct Module {
    #[serde(rename = "type")]
    kind: String,
    path: String,
}

impl Module {
    /// The name of its class, if it is one of the library.
    fn name(&self) -> Option<&str> {
        self.kind
            .strip_prefix("sentence_transformers.")
            .and_then(|kind| kind.rsplit('.').next())
    }

    /// Whether its folder is in the model's.
    fn is_inside(&self) -> bool {
        Path::new(&self.path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
    }

    fn config_path(&self, folder: &Path) -> PathBuf {
        folder.join(&self.path).join("config.json")
    }

    fn config<T: serde::de::DeserializeOwned>(&self, folder: &Path) -> Result<T> {
        if self.path.is_empty() || !self.is_inside() {
            return Err(Error::data(format!(
                "{}: {:?} is no folder in the model's",
                folder.join(MODULES).display(),
                self.path
            )));
        }
        read_json(&self.config_path(folder))
    }
}

/// The configuration of a pooling module: `pooling_mode`, or the older keys that are true or false.
#[derive(Deserialize)]
struct PoolingConfig {
    #[serde(default)]
    pooling_mode: Option<OneOrSeveral>,
    #[serde(default = "yes")]
    include_prompt: bool,
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

/// One name or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrSeveral {
    One(String),
    Several(Vec<String>),
}

fn yes() -> bool {
    true
}

impl PoolingConfig {
    fn poolings(self, prompt: &str) -> Result<Vec<Pooling>> {
        if !self.include_prompt && !prompt.is_empty() {
            return Err(Error::unsupported(
                "include_prompt false with a default prompt; true is supported",
            ));
        }
        let names = match self.pooling_mode {
            Some(OneOrSeveral::One(name)) => vec![name],
            Some(OneOrSeveral::Several(names)) => names,
            None => return self.older(),
        };
        let known = |name: &String| {
            Pooling::ALL
                .iter()
                .find(|(_, known, _)| known == name)
                .map(|(pooling, ..)| *pooling)
                .ok_or_else(|| {
                    let known = Pooling::ALL.map(|(_, name, _)| name).join(", ");
                    Error::unsupported(format!("pooling_mode {name:?}; known are {known}"))
                })
        };
        if names.is_empty() {
            return Err(Error::data("pooling_mode is an empty list"));
        }
        names.iter().map(known).collect()
    }

    /// By the older keys; the mean if none is true.
    fn older(&self) -> Result<Vec<Pooling>> {
        let is_set = |key: &str| self.others.get(key) == Some(&serde_json::Value::Bool(true));
        let is_known = |key: &str| Pooling::ALL.iter().any(|(.., known)| *known == key);
        let unknown = self
            .others
            .keys()
            .find(|key| key.starts_with("pooling_mode_") && is_set(key) && !is_known(key));
        if let Some(key) = unknown {
            return Err(Error::unsupported(format!("{key} true is not known")));
        }
        let set: Vec<Pooling> = Pooling::ALL
            .iter()
            .filter(|(.., key)| is_set(key))
            .map(|(pooling, ..)| *pooling)
            .collect();
        Ok(if set.is_empty() {
            vec![Pooling::Mean]
        } else {
            set
        })
    }
}

/// What a module reads and writes.
#[derive(Deserialize)]
struct Names {
    #[serde(default)]
    module_input_name: Option<String>,
    #[serde(default)]
    module_output_name: Option<String>,
}

impl Names {
    fn check(&self, path: &Path) -> Result<()> {
        for (key, name) in [
            ("module_input_name", &self.module_input_name),
            ("module_output_name", &self.module_output_name),
        ] {
            if let Some(name) = name.as_ref().filter(|name| *name != VECTOR) {
                return Err(Error::unsupported(format!(
                    "{}: {key} {name:?}; {VECTOR:?} is supported",
                    path.display()
                )));
            }
        }
        Ok(())
    }
}

/// The configuration of a dense layer.
#[derive(Deserialize)]
struct DenseConfig {
    in_features: usize,
    out_features: usize,
    #[serde(default = "yes")]
    bias: bool,
    #[serde(default)]
    activation_function: Option<String>,
    #[serde(default)]
    use_residual: bool,
    #[serde(flatten)]
    names: Names,
}

impl DenseConfig {
    /// The activation, and its name in PyTorch.
    fn activation(&self) -> Result<(Activation, String)> {
        let path = self
            .activation_function
            .as_deref()
            .unwrap_or("torch.nn.modules.activation.Tanh");
        let name = path
            .strip_prefix("torch.nn.")
            .and_then(|path| path.rsplit('.').next())
            .unwrap_or(path);
        let activation = match name {
            "Identity" => Activation::None,
            "Tanh" => Activation::Tanh,
            "ReLU" => Activation::Relu,
            "ReLU6" => Activation::Relu6,
            "GELU" => Activation::GeluErf,
            "SiLU" => Activation::Silu,
            "ELU" => Activation::Elu,
            "Sigmoid" => Activation::Sigmoid,
            _ => {
                return Err(Error::unsupported(format!(
                    "activation_function {path:?}; Identity, Tanh, ReLU, ReLU6, GELU, SiLU, ELU and Sigmoid of torch.nn are supported"
                )));
            }
        };
        Ok((activation, name.to_owned()))
    }
}

/// The configuration of a layer norm.
#[derive(Deserialize)]
struct LayerNormConfig {
    dimension: usize,
}

/// [`ENCODER_SETTINGS`], with the maximum number of tokens from [`TOKENIZER_SETTINGS`] if it is not
/// among them.
#[derive(Default, Deserialize)]
struct EncoderSettings {
    #[serde(default)]
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
    #[serde(default)]
    transformer_task: Option<String>,
    #[serde(default)]
    module_output_name: Option<String>,
    #[serde(default)]
    tokenizer_name_or_path: Option<String>,
    #[serde(default)]
    modality_config: Option<BTreeMap<String, Modality>>,
    #[serde(default)]
    processing_kwargs: Option<BTreeMap<String, serde_json::Value>>,
}

/// What a modality of an encoder computes.
#[derive(Deserialize)]
struct Modality {
    #[serde(default)]
    method_output_name: Option<String>,
}

/// [`TOKENIZER_SETTINGS`].
#[derive(Deserialize)]
struct TokenizerSettings {
    /// 10³⁰ if there is no maximum.
    #[serde(default)]
    model_max_length: Option<f64>,
}

impl EncoderSettings {
    fn read(folder: &Path) -> Result<EncoderSettings> {
        let path = ENCODER_SETTINGS
            .iter()
            .map(|name| folder.join(name))
            .find(|path| path.exists());
        let mut settings = match &path {
            Some(path) => {
                let settings: EncoderSettings = read_json(path)?;
                settings.check().map_err(|error| error.at(path.display()))?;
                settings
            }
            None => EncoderSettings::default(),
        };
        let tokenizer = folder.join(TOKENIZER_SETTINGS);
        if settings.max_seq_length.is_none() && tokenizer.exists() {
            let read: TokenizerSettings = read_json(&tokenizer)?;
            settings.max_seq_length = read.model_max_length.map(|length| length as usize);
        }
        if settings.max_seq_length == Some(0) {
            return Err(Error::data(format!(
                "{}: a maximum of 0 tokens",
                folder.display()
            )));
        }
        Ok(settings)
    }

    /// Rejects unsupported settings by key.
    fn check(&self) -> Result<()> {
        let output_name = self
            .modality_config
            .as_ref()
            .and_then(|modalities| modalities.get("text")?.method_output_name.as_ref());
        let texts = [
            (
                "transformer_task",
                self.transformer_task.as_ref(),
                "feature-extraction",
            ),
            (
                "module_output_name",
                self.module_output_name.as_ref(),
                "token_embeddings",
            ),
            (
                "modality_config.text.method_output_name",
                output_name,
                "last_hidden_state",
            ),
        ];
        for (key, found, supported) in texts {
            if let Some(found) = found.filter(|found| *found != supported) {
                return Err(Error::unsupported(format!(
                    "{key} {found:?}; {supported:?} is supported"
                )));
            }
        }
        if let Some(path) = &self.tokenizer_name_or_path {
            return Err(Error::unsupported(format!(
                "tokenizer_name_or_path {path:?}; the tokenizer of the folder is supported"
            )));
        }
        match self.processing_kwargs.iter().flatten().next() {
            Some((key, _)) => Err(Error::unsupported(format!(
                "processing_kwargs.{key} is not supported"
            ))),
            None => Ok(()),
        }
    }
}

/// [`SETTINGS`].
#[derive(Default)]
struct Settings {
    prompt: String,
    truncate_dim: Option<usize>,
}

impl Settings {
    fn read(folder: &Path) -> Result<Settings> {
        #[derive(Deserialize)]
        struct File {
            #[serde(default)]
            model_type: Option<String>,
            #[serde(default)]
            prompts: Option<BTreeMap<String, Option<String>>>,
            #[serde(default)]
            default_prompt_name: Option<String>,
            #[serde(default)]
            truncate_dim: Option<usize>,
        }
        let path = folder.join(SETTINGS);
        if !path.exists() {
            return Ok(Settings::default());
        }
        let file: File = read_json(&path)?;
        let place = path.display();
        if let Some(kind) = file.model_type.filter(|kind| kind != "SentenceTransformer") {
            return Err(Error::unsupported(format!(
                "{place}: model_type {kind:?}; \"SentenceTransformer\" is supported"
            )));
        }
        if file.truncate_dim == Some(0) {
            return Err(Error::data(format!("{place}: truncate_dim 0")));
        }
        let prompts = file.prompts.unwrap_or_default();
        let prompt = match &file.default_prompt_name {
            None => String::new(),
            Some(name) => match prompts.get(name) {
                Some(prompt) => prompt.clone().unwrap_or_default(),
                // The library defines both as empty.
                None if ["query", "document"].contains(&name.as_str()) => String::new(),
                None => {
                    let names: Vec<&str> = prompts.keys().map(String::as_str).collect();
                    return Err(Error::data(format!(
                        "{place}: default_prompt_name {name:?} is not one of the prompts: {}",
                        names.join(", ")
                    )));
                }
            },
        };
        Ok(Settings {
            prompt,
            truncate_dim: file.truncate_dim,
        })
    }
}
