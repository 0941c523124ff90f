//! Ensembles in safetensors files: `member.N.layerK.weight` \[inputs, outputs\] and `.bias` of each
//! network, `change.mean`, `change.deviation` and `change.noise` by channel; everything else is in
//! the metadata `tectum.twin`.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::{Deserialize, Serialize};
use tectum::{ContentHash, Error, Result};

use super::Network;
use super::ensemble::{Ensemble, MAX_MEMBERS, Plant, TrainingProvenance};
use super::sequence::{CHANNEL_NAMES, CHANNELS, COMMAND, SequenceLayout};

/// The key of the metadata.
const KEY: &str = "tectum.twin";
/// The version that is written; others are rejected.
const VERSION: u32 = 2;
/// The maximum width and number of layers that are read.
const MAX_WIDTH: usize = 4096;
const MAX_LAYERS: usize = 16;
/// Tensors other than the networks'.
const CHANGES: [&str; 3] = ["change.mean", "change.deviation", "change.noise"];

#[derive(Serialize, Deserialize)]
struct Metadata {
    version: u32,
    layout: SequenceLayout,
    members: usize,
    hidden: Vec<usize>,
    plant: Plant,
    origin: TrainingProvenance,
}

/// The version alone: others may have other metadata.
#[derive(Deserialize)]
struct MetadataVersion {
    version: u32,
}

impl Ensemble {
    /// Writes the file atomically: completely or not at all.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn save(&self, path: &Path) -> Result<()> {
        let metadata = Metadata {
            version: VERSION,
            layout: self.layout,
            members: self.members.len(),
            hidden: self.network.hidden().to_vec(),
            plant: self.plant.clone(),
            origin: self.origin.clone(),
        };
        let metadata = serde_json::to_string(&metadata)
            .map_err(|source| Error::data("twin").with_source(source))?;
        let mut tensors = Vec::new();
        for (member, weights) in self.members.iter().enumerate() {
            for entry in self.network.parameters().entries() {
                tensors.push((
                    tensor_name(member, &entry.name),
                    tensor_shape(&entry.name, entry.shape),
                    &weights[entry.range()],
                ));
            }
        }
        for (name, numbers) in CHANGES
            .into_iter()
            .zip([&self.mean, &self.deviation, &self.noise])
        {
            tensors.push((name.to_owned(), vec![CHANNELS], &numbers[..]));
        }
        let view = |(name, shape, numbers): (String, Vec<usize>, &[f32])| {
            let bytes: Vec<u8> = numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect();
            (name, shape, bytes)
        };
        let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = tensors.into_iter().map(view).collect();
        let views = tensors.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            view.map(|view| (name.clone(), view))
                .map_err(|source| Error::data(format!("twin: tensor {name}")).with_source(source))
        });
        let views = views.collect::<Result<Vec<_>>>()?;
        let bytes = serialize(views, Some(HashMap::from([(KEY.to_owned(), metadata)])))
            .map_err(|source| Error::data("twin").with_source(source))?;
        tectum::file::write(path, &bytes)
    }

    /// Reads what [`Ensemble::save`] wrote.
    ///
    /// # Errors
    /// `Io` for a file that cannot be read; `Data`, naming file and tensor, for another kind of
    /// file, one of another version or cut short, and for a tensor that is missing, of another
    /// shape or type, or not finite.
    pub fn load(path: &Path) -> Result<Self> {
        let fault = |what: String| Error::data(format!("{}: {what}", path.display()));
        let bytes = std::fs::read(path).map_err(|source| Error::io(path.display(), source))?;
        let refused = |source| fault("not a safetensors file".to_owned()).with_source(source);
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(refused)?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(refused)?;
        let text = header
            .metadata()
            .as_ref()
            .and_then(|texts| texts.get(KEY))
            .ok_or_else(|| fault(format!("no twin: its metadata has no {KEY}; the weights of a model are named by its folder")))?;
        let unreadable =
            |source: serde_json::Error| fault(format!("metadata {KEY}")).with_source(source);
        let MetadataVersion { version } = serde_json::from_str(text).map_err(unreadable)?;
        if version != VERSION {
            return Err(fault(format!(
                "a twin of version {version}; {VERSION} is read"
            )));
        }
        let metadata: Metadata = serde_json::from_str(text).map_err(unreadable)?;
        for ((name, unit), known) in metadata
            .plant
            .channels
            .iter()
            .chain([&metadata.plant.command])
            .zip(CHANNEL_NAMES.into_iter().chain([COMMAND]))
        {
            if (name.as_str(), unit.as_str()) != known {
                return Err(fault(format!(
                    "metadata {KEY}: {name} in {unit}; {} in {} is needed",
                    known.0, known.1
                )));
            }
        }
        metadata
            .layout
            .check()
            .map_err(|error| error.at(path.display()))?;
        let is_possible = (1..=MAX_MEMBERS).contains(&metadata.members)
            && metadata.hidden.len() < MAX_LAYERS
            && metadata
                .hidden
                .iter()
                .all(|width| (1..=MAX_WIDTH).contains(width));
        if !is_possible {
            return Err(fault(format!(
                "{} networks with layers of {:?}",
                metadata.members, metadata.hidden
            )));
        }
        let network = Network::new(metadata.layout.features(), &metadata.hidden, CHANNELS)?;
        let floats = |name: &str, shape: &[usize], to: &mut [f32]| {
            let tensor = tensors.tensor(name).map_err(|source| {
                fault(format!("no tensor {name}, which has shape {shape:?}")).with_source(source)
            })?;
            if tensor.shape() != shape || to.len() != shape.iter().product::<usize>() {
                return Err(fault(format!(
                    "tensor {name} is {:?}, {shape:?} is needed",
                    tensor.shape()
                )));
            }
            if tensor.dtype() != Dtype::F32 {
                return Err(fault(format!(
                    "tensor {name} holds {:?}; F32 is read",
                    tensor.dtype()
                )));
            }
            to.iter_mut()
                .zip(tensor.data().as_chunks().0)
                .for_each(|(to, bytes)| *to = f32::from_le_bytes(*bytes));
            Ok(())
        };
        let finite = |name: &str, numbers: &[f32]| match numbers
            .iter()
            .position(|number| !number.is_finite())
        {
            Some(at) => Err(fault(format!("tensor {name} is {} at {at}", numbers[at]))),
            None => Ok(()),
        };
        let mut members = Vec::with_capacity(metadata.members);
        for member in 0..metadata.members {
            let mut packed = vec![0.0; network.parameters().len()];
            for entry in network.parameters().entries() {
                let name = tensor_name(member, &entry.name);
                floats(
                    &name,
                    &tensor_shape(&entry.name, entry.shape),
                    &mut packed[entry.range()],
                )?;
                finite(&name, &packed[entry.range()])?;
            }
            members.push(packed);
        }
        let read = |name: &str| -> Result<Vec<f32>> {
            let mut numbers = vec![0.0; CHANNELS];
            floats(name, &[CHANNELS], &mut numbers)?;
            finite(name, &numbers).map(|()| numbers)
        };
        let (mean, deviation, noise) = (read(CHANGES[0])?, read(CHANGES[1])?, read(CHANGES[2])?);
        Ok(Self {
            layout: metadata.layout,
            network,
            members,
            mean,
            deviation,
            noise,
            plant: metadata.plant,
            origin: metadata.origin,
            file_hash: Some(ContentHash::of(&bytes)),
        })
    }
}

fn tensor_name(member: usize, parameter: &str) -> String {
    format!("member.{member}.{parameter}")
}

/// A bias is a row, which files hold as a vector.
fn tensor_shape(parameter: &str, [rows, columns]: [usize; 2]) -> Vec<usize> {
    if parameter.ends_with("bias") {
        vec![columns]
    } else {
        vec![rows, columns]
    }
}
