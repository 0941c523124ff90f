//! A file: what it declares, before any shape is known.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use rten_onnx::onnx::{
    Dimension, GraphProto, ModelProto, StringStringEntryProto, TensorProto, ValueInfoProto,
};
use tectum::{Error, Result};

use crate::element::ElementType;
use crate::reader;

/// Opset versions that are read.
pub(crate) const OPSETS: std::ops::RangeInclusive<i64> = 1..=28;

/// An ONNX file.
///
/// # Example
/// ```no_run
/// use tectum_onnx::Model;
/// let model = Model::open("policy.onnx")?;
/// let network = model.load(&[])?;
/// let mut policy = network.compile(&tectum::Device::open("cpu")?)?;
/// policy.set_floats("obs", &[0.0; 48])?;
/// policy.run()?;
/// println!("{:?}", policy.floats("actions")?);
/// # Ok::<(), tectum::Error>(())
/// ```
pub struct Model {
    proto: ModelProto,
    /// The folder of files with the data of tensors; none for a model from bytes.
    folder: Option<PathBuf>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .finish_non_exhaustive()
    }
}

/// An input or output.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The type of its elements; none for what is no tensor, or a type without meaning here.
    pub element: Option<ElementType>,
    /// Its dimensions; none if the file does not state them.
    pub dims: Option<Vec<PortDim>>,
}

/// A dimension as a file states it.
#[derive(Debug, Clone, PartialEq)]
pub enum PortDim {
    /// A size.
    Size(usize),
    /// A name that gets a size when the model is loaded.
    Named(String),
    /// Nothing, or a placeholder for an unknown size such as `?`, of which each is another size.
    Unknown,
}

impl fmt::Display for PortDim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortDim::Size(size) => write!(f, "{size}"),
            PortDim::Named(name) => f.write_str(name),
            PortDim::Unknown => f.write_str("?"),
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = self.element.map_or("unsupported type", ElementType::name);
        match &self.dims {
            Some(dims) => write!(
                f,
                "{} [{}] {element}",
                self.name,
                dims.iter()
                    .map(PortDim::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            None => write!(f, "{} [shape not stated] {element}", self.name),
        }
    }
}

impl Model {
    /// Reads a file. Tensors with external data are read from the folder of the file when the model
    /// is loaded.
    ///
    /// # Errors
    /// `Io` for a file that cannot be read, `Data` for one that is no ONNX model.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|error| Error::io(path.display(), error))?;
        let mut model = Self::from_bytes(&bytes).map_err(|error| error.at(path.display()))?;
        model.folder = Some(path.parent().unwrap_or(Path::new("")).to_owned());
        Ok(model)
    }

    /// Reads the bytes of a file without external data.
    ///
    /// # Errors
    /// `Data` for bytes that are no ONNX model.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let proto = reader::model(bytes)?;
        let graph = proto
            .graph
            .as_ref()
            .expect("invariant: the reader refuses a model without graph");
        let initialized = |port: &ValueInfoProto| {
            graph
                .initializer
                .iter()
                .any(|tensor| tensor.name == port.name)
        };
        let inputs = graph
            .input
            .iter()
            .filter(|port| !initialized(port))
            .map(Port::of)
            .collect();
        let outputs = graph.output.iter().map(Port::of).collect();
        Ok(Self {
            inputs,
            outputs,
            folder: None,
            proto,
        })
    }

    /// The inputs that are fed: those without an initial value.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// The outputs.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// What the file says of itself, by key.
    pub fn metadata(&self) -> BTreeMap<&str, &str> {
        pairs(&self.proto.metadata_props).collect()
    }

    /// The program that wrote the file, with its version.
    pub fn producer(&self) -> String {
        let parts = [&self.proto.producer_name, &self.proto.producer_version];
        parts
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The version of the operators of the default domain.
    pub fn opset(&self) -> i64 {
        self.opset_of("")
    }

    pub(crate) fn opset_of(&self, domain: &str) -> i64 {
        let same = |id: &Option<String>| normal(id.as_deref().unwrap_or_default()) == domain;
        self.proto
            .opset_import
            .iter()
            .find(|import| same(&import.domain))
            .and_then(|import| import.version)
            .unwrap_or(1)
    }

    /// How often each operator occurs, also within the branches of others.
    pub fn operators(&self) -> BTreeMap<String, usize> {
        fn count(graph: &GraphProto, operators: &mut BTreeMap<String, usize>) {
            for node in &graph.node {
                *operators
                    .entry(operator_name(
                        node.domain.as_deref(),
                        node.op_type.as_deref(),
                    ))
                    .or_default() += 1;
                node.attribute
                    .iter()
                    .filter_map(|attribute| attribute.g.as_ref())
                    .for_each(|graph| count(graph, operators));
            }
        }
        let mut operators = BTreeMap::new();
        count(self.graph(), &mut operators);
        operators
    }

    pub(crate) fn graph(&self) -> &GraphProto {
        self.proto
            .graph
            .as_ref()
            .expect("invariant: the reader refuses a model without graph")
    }

    /// The bytes of a tensor that the file keeps in another file.
    pub(crate) fn external(&self, tensor: &TensorProto) -> Result<Vec<u8>> {
        let name = tensor.name.as_deref().unwrap_or_default();
        let fault = |message: String| Error::data(format!("tensor {name:?}: {message}"));
        let entries: BTreeMap<&str, &str> = pairs(&tensor.external_data).collect();
        let number = |key: &str| {
            entries
                .get(key)
                .map(|text| {
                    text.parse::<u64>()
                        .map_err(|_| fault(format!("{key} {text:?} is no number")))
                })
                .transpose()
        };
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
        let location = entries
            .get("location")
            .ok_or_else(|| fault("external data without a location".to_owned()))?;
        let is_inside = Path::new(location)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let Some(folder) = self.folder.as_ref().filter(|_| is_inside) else {
            return Err(fault(format!(
                "external data at {location:?}, which is not in the folder of the file"
            )));
        };
        let path = folder.join(location);
        let io = |error| Error::io(format_args!("tensor {name:?}: {}", path.display()), error);
        let mut file = fs::File::open(&path).map_err(io)?;
        let whole = file.metadata().map_err(io)?.len();
        let length = length.unwrap_or(whole.saturating_sub(offset));
        if offset.checked_add(length).is_none_or(|end| end > whole) {
            return Err(fault(format!(
                "{length} bytes from {offset} on of {}, which has {whole}",
                path.display()
            )));
        }
        file.seek(SeekFrom::Start(offset)).map_err(io)?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes).map_err(io)?;
        Ok(bytes)
    }
}

fn pairs(entries: &[StringStringEntryProto]) -> impl Iterator<Item = (&str, &str)> {
    entries.iter().filter_map(|entry| {
        Some((
            entry.key.as_deref()?,
            entry.value.as_deref().unwrap_or_default(),
        ))
    })
}

/// The default domain has two names.
pub(crate) fn normal(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// An operator with its domain, if that is not the default one.
pub(crate) fn operator_name(domain: Option<&str>, operator: Option<&str>) -> String {
    let operator = operator.unwrap_or("(no operator)");
    match normal(domain.unwrap_or_default()) {
        "" => operator.to_owned(),
        domain => format!("{domain}:{operator}"),
    }
}

/// Whether the text of a dimension names it. Exporters write `?` and the like for every size that
/// they do not know: Paddle2ONNX, for example.
fn is_name(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric) && !["-1", "None"].contains(&text)
}

/// The name of an axis for a size: `INPUT.AXIS`.
pub(crate) fn axis_name(input: &str, axis: usize) -> String {
    format!("{input}.{axis}")
}

impl Port {
    /// The axes without a size in the file, each with the name that gives it one when the model is
    /// loaded: `INPUT.AXIS`.
    pub fn open_axes(&self) -> impl Iterator<Item = (usize, String)> {
        self.dims
            .iter()
            .flatten()
            .enumerate()
            .filter(|(_, dim)| !matches!(dim, PortDim::Size(_)))
            .map(|(axis, _)| (axis, axis_name(&self.name, axis)))
    }

    pub(crate) fn of(info: &ValueInfoProto) -> Self {
        let tensor = info
            .r#type
            .as_ref()
            .and_then(|kind| kind.tensor_type.as_ref());
        let dim = |dim: &Dimension| match (dim.dim_value, &dim.dim_param) {
            (Some(size), _) => usize::try_from(size).map_or(PortDim::Unknown, PortDim::Size),
            (None, Some(name)) if is_name(name) => PortDim::Named(name.clone()),
            _ => PortDim::Unknown,
        };
        Self {
            name: info.name.clone().unwrap_or_default(),
            element: tensor
                .and_then(|tensor| tensor.elem_type)
                .and_then(ElementType::of),
            dims: tensor
                .and_then(|tensor| tensor.shape.as_ref())
                .map(|shape| shape.dim.iter().map(dim).collect()),
        }
    }
}
