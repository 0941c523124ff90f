//! Genomes: brains described as boxes of neurons and rules for the synapses between them.
//!
//! ```
//! use tectum_spiking::genome::{Genome, GenomeOptions};
//! let text = r#"{
//!     "version": "2.1",
//!     "blueprint": {
//!         "iseen_": {"cortical_name": "eye", "group_id": "IPU", "block_boundaries": [4, 1, 1], "mp_charge_accumulation": false,
//!                    "cortical_mapping_dst": {"omove_": [["block_to_block", [1, 1, 1], 3, false]]}},
//!         "omove_": {"cortical_name": "arm", "group_id": "OPU", "block_boundaries": [2, 1, 1], "mp_charge_accumulation": false}
//!     },
//!     "neuron_morphologies": {"block_to_block": {"type": "vectors", "parameters": {"vectors": [[0, 0, 0]]}}},
//!     "physiology": {"simulation_timestep": 0.025}
//! }"#;
//! let genome = Genome::parse(text, &GenomeOptions::default())?;
//! assert_eq!((genome.neurons(), genome.areas()[1].neurons.clone()), (6, 4..6));
//! // Voxels 0 and 1 of the eye have a counterpart in the arm, 2 and 3 do not.
//! assert_eq!(genome.estimate().synapses, 2);
//! # Ok::<(), tectum::Error>(())
//! ```
//!
//! `docs/genomes.md` defines the format, the units and every morphology.

mod area;
mod area_id;
mod document;
mod draw;
mod estimate;
mod expansion;
mod mapping;
mod morphology;
mod physiology;
mod property;
mod record;
mod region;
mod relation;
mod schema;
#[cfg(test)]
mod tests;
mod units;
mod warnings;
mod weight_loss;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use tectum::{Error, Result};

pub use self::area::{Area, AreaProperties, AreaRole, MemoryProperties};
pub use self::area_id::{AreaId, CoreArea};
pub use self::estimate::{GenomeEstimate, MappingEstimate};
pub use self::expansion::Synapse;
pub use self::mapping::{Mapping, Plasticity};
use self::morphology::Morphologies;
pub use self::morphology::{Morphology, PlasticMorphology};
pub use self::physiology::Physiology;
pub use self::region::Region;
pub use self::relation::{Axis, Relation, SourceRule, TargetRule};
pub use self::units::{Conversion, QuantityReport, UnitPolicy, UnitReport};
use self::warnings::{Warnings, quoted};
pub use self::weight_loss::{WeightLossPolicy, WeightLossReport};

/// How a genome is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GenomeOptions {
    /// Which units its numbers are in.
    pub units: UnitPolicy,
    /// When the synapses of its plastic mappings lose weight.
    pub weight_loss: WeightLossPolicy,
    /// Whether a morphology without a known definition is an error rather than a warning and no
    /// synapses.
    pub strict: bool,
}

/// A brain as a file describes it, checked. Made only by [`Genome::parse`].
#[derive(Debug, Clone, PartialEq)]
pub struct Genome {
    title: String,
    version: String,
    physiology: Physiology,
    areas: Vec<Area>,
    mappings: Vec<Mapping>,
    regions: Vec<Region>,
    units: UnitReport,
    weight_loss: WeightLossReport,
    warnings: Vec<String>,
}

/// The largest file.
const MAX_BYTES: u64 = 64 << 20;
/// Sections that are read, or that have no effect in the format's engines either.
const SECTIONS: [&str; 25] = [
    "blueprint",
    "brain_regions",
    "brain_regions_root",
    "burst_delay",
    "evolution_burst_count",
    "genome_description",
    "genome_id",
    "genome_schema_version",
    "genome_title",
    "hosts",
    "ipu_idle_threshold",
    "lifespan_mgmt_interval",
    "max_age",
    "max_burst_count",
    "neuron_morphologies",
    "physiology",
    "plasticity_queue_depth",
    "signatures",
    "species",
    "stats",
    "templates",
    "timestamp",
    "version",
    "visualization_voxel_granularity_overrides",
    "change_history",
];
/// Sections that change a run in the newest reference, not here, unless they are empty.
const UNSUPPORTED_SECTIONS: [&str; 2] = ["classifiers", "modulators"];

impl Genome {
    /// Reads a genome from a file.
    ///
    /// # Errors
    /// `Io` for a file that cannot be read or exceeds 64 MiB, else as [`Genome::parse`]; each names
    /// the path.
    pub fn read(path: &Path, options: &GenomeOptions) -> Result<Self> {
        let size = std::fs::metadata(path)
            .map_err(|source| Error::io(path.display(), source))?
            .len();
        if size > MAX_BYTES {
            return Err(Error::data(format!(
                "{}: {size} bytes; a genome has at most {MAX_BYTES}",
                path.display()
            )));
        }
        let text =
            std::fs::read_to_string(path).map_err(|source| Error::io(path.display(), source))?;
        Self::parse(&text, options).map_err(|error| error.at(path.display()))
    }

    /// Reads a genome of version 2.0, 2.1 or 3.0 or of schema 2, 3 or 4, flat or hierarchical, from
    /// its text, which may begin with a byte order mark.
    ///
    /// # Units
    /// Those of the file, converted as `options.units` says; see [`Genome::units`].
    ///
    /// # Errors
    /// `Data`, naming area and key: text that is not JSON, a value of the wrong type or out of
    /// range, an unknown destination or morphology, more than 2³¹ neurons, two spellings of one
    /// thing that differ. `Unsupported` for another version or schema, a file of another format,
    /// and, if strict, for a function without a known definition.
    ///
    /// # Cost
    /// Memory proportional to the text, independent of the sizes that it names.
    ///
    /// # Source
    /// FEAGI (Nadji-Tehrani and Eslami, IEEE TNNLS 31(12), 2020); `docs/genomes.md` lists where we
    /// depart from it.
    pub fn parse(text: &str, options: &GenomeOptions) -> Result<Self> {
        let document = document::parse(text)?;
        let sections = document
            .as_object()
            .ok_or_else(|| Error::data("not a genome: an object needed"))?;
        let mut warnings = Warnings::default();
        for (key, value) in sections {
            if UNSUPPORTED_SECTIONS.contains(&key.as_str()) {
                if !record::is_empty(value) {
                    warnings.add(format!(
                        "section {} is known, but has no effect here",
                        quoted(key)
                    ));
                }
            } else if !SECTIONS.contains(&key.as_str()) {
                warnings.add(format!("section {} is unknown", quoted(key)));
            }
        }
        schema::refuse_example(sections)?;
        let version = schema::version(sections)?;
        let blueprint = sections
            .get("blueprint")
            .ok_or_else(|| Error::data("not a genome: blueprint is missing"))?;
        let blueprint = blueprint
            .as_object()
            .ok_or_else(|| Error::data("blueprint: an object needed"))?;
        let mut records = record::records(blueprint, &mut warnings)?;
        area::sort(&mut records);
        let mut units = UnitReport::new(options.units, &records)?;
        let areas = area::areas(&records, &mut units, &mut warnings)?;
        let indices = areas
            .iter()
            .enumerate()
            .map(|(index, area)| (area.id, index))
            .collect::<BTreeMap<_, _>>();
        let morphologies = Morphologies::read(sections.get("neuron_morphologies"), &mut warnings)?;
        let mappings = mapping::Reader {
            areas: &areas,
            indices: &indices,
            morphologies,
            strict: options.strict,
        }
        .mappings(&records, &mut warnings)?;
        Ok(Self {
            title: title(sections)?,
            weight_loss: WeightLossReport::new(options.weight_loss, &version, sections),
            version,
            physiology: Physiology::read(sections, &mut warnings)?,
            regions: region::regions(sections.get("brain_regions"), &indices, &mut warnings)?,
            areas,
            mappings,
            units,
            warnings: warnings.finish(),
        })
    }

    /// The title; may be empty.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The version of the format: the number of `genome_schema_version`, such as `4`, or without it
    /// the text of `version`, such as `2.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Properties of the brain as a whole.
    pub fn physiology(&self) -> &Physiology {
        &self.physiology
    }

    /// The areas: core areas first, by their number, then the others in the order of the file.
    /// Neuron ids follow this order.
    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// The mappings: by source area, then in the order of the file.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// The regions, in the order of the file.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Which units were found, why, and what each converted value became.
    pub fn units(&self) -> &UnitReport {
        &self.units
    }

    /// When the synapses of plastic mappings lose weight, and why.
    pub fn weight_loss(&self) -> &WeightLossReport {
        &self.weight_loss
    }

    /// Entries of the file that have no effect here, and assumptions that were made.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The number of neurons; ids are below it.
    pub fn neurons(&self) -> u32 {
        self.areas.last().map_or(0, |area| area.neurons.end)
    }

    /// The index of the area of an id, in any spelling, or else of a unique area name.
    pub fn area(&self, name: &str) -> Option<usize> {
        let by_id = name
            .parse::<AreaId>()
            .ok()
            .and_then(|id| self.areas.iter().position(|area| area.id == id));
        by_id.or_else(|| {
            let mut named = self
                .areas
                .iter()
                .enumerate()
                .filter(|(_, area)| area.name == name);
            let (index, _) = named.next()?;
            named.next().is_none().then_some(index)
        })
    }

    /// The index of a core area, if the genome has it.
    pub fn core(&self, core: CoreArea) -> Option<usize> {
        self.areas
            .iter()
            .position(|area| area.role == AreaRole::Core(core))
    }

    /// The index of the area of a neuron.
    ///
    /// # Panics
    /// If there is no such neuron.
    pub fn area_of(&self, neuron: u32) -> usize {
        assert!(
            neuron < self.neurons(),
            "neuron {neuron} of {}",
            self.neurons()
        );
        self.areas
            .partition_point(|area| area.neurons.end <= neuron)
    }
}

fn title(sections: &Map<String, Value>) -> Result<String> {
    match sections.get("genome_title") {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(title)) => Ok(title.clone()),
        Some(other) => Err(Error::data(format!(
            "genome_title: {} given; a text needed",
            record::kind(other)
        ))),
    }
}
