//! Areas: boxes of voxels whose neurons share their properties.

use std::ops::Range;

use serde::Serialize;
use tectum::{Error, Result};

use super::area_id::{AreaId, CoreArea};
use super::property::Property;
use super::record::Record;
use super::units::UnitReport;
use super::warnings::{Warnings, quoted};

/// A box of voxels with a number of neurons in each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Area {
    /// The id, in canonical form.
    pub id: AreaId,
    /// The display name; may be empty.
    pub name: String,
    /// The kind of area.
    pub role: AreaRole,
    /// Voxels along x, y and z, at least 1 each.
    pub size: [u32; 3],
    /// Neurons in each voxel, at least 1.
    pub per_voxel: u32,
    /// Its position in the brain's space, in voxels; has no effect on a run.
    pub position: [i32; 3],
    /// Devices that share the area along x, for inputs and outputs; 0 by default.
    pub devices: u32,
    /// The ids of its first neuron and of the one after its last. Within it the order is x, then y,
    /// then z, then place in the voxel (the last varies fastest).
    pub neurons: Range<u32>,
    /// The properties of its neurons.
    pub properties: AreaProperties,
}

/// The kind of an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AreaRole {
    /// One of the areas with a fixed meaning.
    Core(CoreArea),
    /// Sensors write to it.
    Input,
    /// Motors read it.
    Output,
    /// Recognises patterns of other areas over time.
    Memory,
    /// Any other area.
    Custom,
}

impl AreaRole {
    /// The role in one word; `core` for each of the areas with a fixed meaning.
    pub fn name(self) -> &'static str {
        match self {
            AreaRole::Core(_) => "core",
            AreaRole::Input => "input",
            AreaRole::Output => "output",
            AreaRole::Memory => "memory",
            AreaRole::Custom => "custom",
        }
    }
}

/// The properties of an area's neurons, in the engine's units, independent of the file's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AreaProperties {
    /// Minimum membrane potential at which the neuron at the origin fires.
    pub threshold: f32,
    /// Increment of the threshold for each voxel along x, y and z.
    pub threshold_increment: [f32; 3],
    /// Membrane potential above which it does not fire; 0 for no limit.
    pub threshold_limit: f32,
    /// Fraction of the potential that is lost in a burst without firing, 0 to 1.
    pub leak: f32,
    /// Spread of the leak over neurons, a fraction 0 to 1. It is not applied: no definition of it
    /// is known.
    pub leak_variability: f32,
    /// Potential to which it leaks: 0. The file format does not define it; the reference ignores
    /// its own value.
    pub resting_potential: f32,
    /// Bursts after firing in which input is discarded.
    pub refractory: u16,
    /// Probability of firing once the threshold is reached, 0 to 1.
    pub excitability: f32,
    /// Maximum consecutive firings; 0 or 65535 for no limit.
    pub consecutive_fire_limit: u16,
    /// Bursts added to the refractory period when that limit is reached.
    pub snooze: u16,
    /// Whether the potential persists between bursts.
    pub mp_charge_accumulation: bool,
    /// Whether every target gets the whole current; if not, each gets it divided by the source's
    /// number of outgoing synapses.
    pub psp_uniform_distribution: bool,
    /// Whether the current is the potential at firing rather than
    /// [`AreaProperties::postsynaptic_current`].
    pub mp_driven_psp: bool,
    /// Current that a firing neuron causes, before weights.
    pub postsynaptic_current: u8,
    /// Maximum current that plasticity may reach; as in the file.
    pub postsynaptic_current_max: f32,
    /// Loss of current with use; as in the file. Only the older reference applies it.
    pub degeneration: f32,
    /// Probability in percent that a possible synapse of a mapping to this area exists, 0 to 100.
    pub synapse_attractivity: f32,
    /// Set for memory areas.
    pub memory: Option<MemoryProperties>,
}

/// How a memory area stores patterns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MemoryProperties {
    /// Bursts of a pattern.
    pub temporal_depth: u16,
    /// Lifespan of a new memory that does not recur, in bursts.
    pub initial_lifespan: u32,
    /// Bursts that each recognition adds.
    pub lifespan_growth: f32,
    /// Lifespan from which a memory is permanent.
    pub longterm_threshold: u32,
}

impl Area {
    /// Voxels of the box.
    pub fn voxels(&self) -> u64 {
        self.size.iter().map(|side| u64::from(*side)).product()
    }

    /// The first neuron of a voxel of the box; the others of the voxel follow it.
    pub fn first_neuron(&self, voxel: [u32; 3]) -> u32 {
        let [x, y, z] = voxel;
        self.neurons.start + ((x * self.size[1] + y) * self.size[2] + z) * self.per_voxel
    }

    /// The voxel of a neuron of the area.
    pub fn voxel_of(&self, neuron: u32) -> [u32; 3] {
        let voxel = (neuron - self.neurons.start) / self.per_voxel;
        let [_, y, z] = self.size;
        [voxel / z / y, voxel / z % y, voxel % z]
    }

    /// Threshold of the neurons of a voxel: `threshold + x·ix + y·iy + z·iz`, in 64-bit floats,
    /// rounded once.
    pub fn threshold_at(&self, voxel: [u32; 3]) -> f32 {
        let increments = self.properties.threshold_increment.iter().zip(voxel);
        let added: f64 = increments
            .map(|(increment, place)| f64::from(*increment) * f64::from(place))
            .sum();
        (f64::from(self.properties.threshold) + added) as f32
    }
}

/// Maximum side of a box, in voxels.
const MAX_SIDE: i64 = 1 << 20;
/// Maximum neurons of an area and of a genome: ids are 32 bits wide, and one bit is left for a
/// mark.
const MAX_NEURONS: u64 = 1 << 31;
/// Maximum of a threshold, limit or increment.
const MAX_POTENTIAL: f64 = 1e9;

/// Sorts areas by the order of their neurons: core areas first, by number, then the others in the
/// order of the file.
pub(super) fn sort(records: &mut [Record<'_>]) {
    records.sort_by_key(|record| record.id.core().map_or(usize::MAX, |core| core as usize));
}

/// Reads all areas.
pub(super) fn areas(
    records: &[Record<'_>],
    units: &mut UnitReport,
    warnings: &mut Warnings,
) -> Result<Vec<Area>> {
    let mut areas = Vec::with_capacity(records.len());
    let mut first = 0;
    for record in records {
        let area = read(record, first, units, warnings)?;
        first = area.neurons.end;
        areas.push(area);
    }
    Ok(areas)
}

fn read(
    record: &Record<'_>,
    first: u32,
    units: &mut UnitReport,
    warnings: &mut Warnings,
) -> Result<Area> {
    let size = size(record)?;
    let per_voxel = record.whole(Property::PerVoxel, 1, 1 << 16)?.unwrap_or(1) as u32;
    let voxels = size.iter().map(|side| u64::from(*side)).product::<u64>();
    let total = voxels
        .saturating_mul(u64::from(per_voxel))
        .saturating_add(u64::from(first));
    if total > MAX_NEURONS {
        let [x, y, z] = size;
        let what = format!(
            "{x} × {y} × {z} voxels of {per_voxel} neurons make {total} with the areas before; at most {MAX_NEURONS}"
        );
        return Err(Error::data(format!(
            "area {}: block_boundaries: {what}",
            record.id
        )));
    }
    let is_memory = is_memory(record)?;
    Ok(Area {
        id: record.id,
        name: record.text(Property::Name)?.unwrap_or_default().to_owned(),
        role: role(record, is_memory, warnings)?,
        size,
        per_voxel,
        position: position(record, warnings)?,
        devices: record.whole(Property::Devices, 0, MAX_SIDE)?.unwrap_or(0) as u32,
        neurons: first..total as u32,
        properties: properties(record, is_memory, units, warnings)?,
    })
}

fn size(record: &Record<'_>) -> Result<[u32; 3]> {
    let side = |property: Property, axis: &str| {
        let side = record.whole(property, 1, MAX_SIDE)?;
        let side = side.ok_or_else(|| {
            Error::data(format!(
                "area {}: block_boundaries: {axis} is missing",
                record.id
            ))
        })?;
        Ok::<u32, Error>(side as u32)
    };
    Ok([
        side(Property::SizeX, "x")?,
        side(Property::SizeY, "y")?,
        side(Property::SizeZ, "z")?,
    ])
}

/// Position by axis; some files have null for areas that were never placed.
fn position(record: &Record<'_>, warnings: &mut Warnings) -> Result<[i32; 3]> {
    let mut position = [0; 3];
    for (place, property) in position.iter_mut().zip([
        Property::PositionX,
        Property::PositionY,
        Property::PositionZ,
    ]) {
        if record
            .value(property)
            .is_some_and(serde_json::Value::is_null)
        {
            warnings.add(format!(
                "area {}: {}: null is read as 0",
                record.id,
                record.key(property).unwrap_or_default()
            ));
            continue;
        }
        *place = record
            .whole(property, i64::from(i32::MIN), i64::from(i32::MAX))?
            .unwrap_or(0) as i32;
    }
    Ok(position)
}

/// Older files mark memory areas by their subgroup.
fn is_memory(record: &Record<'_>) -> Result<bool> {
    let is_marked = record.flag(Property::IsMemory)?.unwrap_or(false);
    let is_in = |text: Option<&str>| text.is_some_and(|text| text.eq_ignore_ascii_case("memory"));
    Ok(
        is_marked
            || is_in(record.text(Property::SubGroup)?)
            || is_in(record.text(Property::Group)?),
    )
}

fn role(record: &Record<'_>, is_memory: bool, warnings: &mut Warnings) -> Result<AreaRole> {
    if let Some(core) = record.id.core() {
        return Ok(AreaRole::Core(core));
    } else if is_memory {
        return Ok(AreaRole::Memory);
    }
    let group = record.text(Property::Group)?.unwrap_or("CUSTOM");
    Ok(match group.to_ascii_uppercase().as_str() {
        "IPU" => AreaRole::Input,
        "OPU" => AreaRole::Output,
        "CUSTOM" | "INTERCONNECT" | "" => AreaRole::Custom,
        _ => {
            warnings.add(format!(
                "area {}: group {} is unknown; CUSTOM taken; known: IPU, OPU, CORE, CUSTOM, MEMORY",
                record.id,
                quoted(group)
            ));
            AreaRole::Custom
        }
    })
}

fn properties(
    record: &Record<'_>,
    is_memory: bool,
    units: &mut UnitReport,
    warnings: &mut Warnings,
) -> Result<AreaProperties> {
    let potential = |property: Property, least: f64| record.number(property, least, MAX_POTENTIAL);
    let increment = |property: Property| {
        potential(property, -MAX_POTENTIAL).map(|step| step.unwrap_or(0.0) as f32)
    };
    let count = |property: Property| {
        record
            .whole(property, 0, i64::from(u16::MAX))
            .map(|count| count.unwrap_or(0) as u16)
    };
    let flag =
        |property: Property, absent: bool| record.flag(property).map(|flag| flag.unwrap_or(absent));
    let threshold = potential(Property::Threshold, 0.0)?.unwrap_or(1.0);
    if record.value(Property::ChargeAccumulation).is_none() {
        warnings.add(format!("area {}: mp_charge_accumulation is absent; false taken (the older reference takes true)", record.id));
    }
    let leak_variability = units.leak(record, Property::LeakVariability, threshold)?;
    if leak_variability != 0.0 {
        warnings.add(format!(
            "area {}: leak_variability has no effect",
            record.id
        ));
    }
    // By default the reference does not divide by fan-out for the power area and memory areas.
    let is_whole = is_memory || record.id.core() == Some(CoreArea::Power);
    Ok(AreaProperties {
        threshold: threshold as f32,
        threshold_increment: [
            increment(Property::ThresholdIncrementX)?,
            increment(Property::ThresholdIncrementY)?,
            increment(Property::ThresholdIncrementZ)?,
        ],
        threshold_limit: potential(Property::ThresholdLimit, 0.0)?.unwrap_or(0.0) as f32,
        leak: units.leak(record, Property::Leak, threshold)?,
        leak_variability,
        resting_potential: 0.0,
        refractory: count(Property::Refractory)?,
        excitability: units.excitability(record)?,
        consecutive_fire_limit: count(Property::ConsecutiveFireLimit)?,
        snooze: count(Property::Snooze)?,
        mp_charge_accumulation: flag(Property::ChargeAccumulation, false)?,
        psp_uniform_distribution: flag(Property::UniformDistribution, is_whole)?,
        mp_driven_psp: flag(Property::DrivenPsp, false)?,
        postsynaptic_current: units.current(record)?,
        postsynaptic_current_max: potential(Property::CurrentMax, 0.0)?.unwrap_or(0.0) as f32,
        degeneration: potential(Property::Degeneration, 0.0)?.unwrap_or(0.0) as f32,
        synapse_attractivity: record
            .number(Property::Attractivity, 0.0, 100.0)?
            .unwrap_or(100.0) as f32,
        memory: memory(record, is_memory, warnings)?,
    })
}

/// Values of the keys of memory areas that the format's engines write into every area.
const USUAL_MEMORY_VALUES: [(Property, &[f64]); 4] = [
    (Property::TemporalDepth, &[0.0, 1.0, 3.0]),
    (Property::InitialLifespan, &[0.0, 9.0, 20.0]),
    (Property::LifespanGrowth, &[0.0, 1.0, 3.0]),
    (Property::LongtermThreshold, &[0.0, 100.0]),
];

/// The settings of a memory area; other areas have the same keys without effect, which are checked
/// too, and reported unless their value is a usual one.
fn memory(
    record: &Record<'_>,
    is_memory: bool,
    warnings: &mut Warnings,
) -> Result<Option<MemoryProperties>> {
    let max_bursts = i64::from(u32::MAX);
    let min_depth = i64::from(is_memory);
    // Where nothing reads a key, its null is the same as its absence.
    let is_stated = |property: Property| {
        is_memory || record.value(property).is_some_and(|value| !value.is_null())
    };
    for (property, usual) in USUAL_MEMORY_VALUES {
        if is_memory || !is_stated(property) {
            continue;
        }
        let value = record.number(property, f64::NEG_INFINITY, f64::INFINITY)?;
        if value.is_some_and(|value| !usual.contains(&value)) {
            warnings.add(format!(
                "area {}: {} has no effect: it is no memory area",
                record.id,
                record.key(property).unwrap_or_default()
            ));
        }
    }
    let whole = |property: Property, min: i64, max: i64, absent: i64| {
        let number = match is_stated(property) {
            true => record.whole(property, min, max)?,
            false => None,
        };
        Ok::<i64, Error>(number.unwrap_or(absent))
    };
    let lifespan_growth = match is_stated(Property::LifespanGrowth) {
        true => record.number(Property::LifespanGrowth, 0.0, MAX_POTENTIAL)?,
        false => None,
    };
    let max_depth = i64::from(u16::MAX);
    let memory = MemoryProperties {
        temporal_depth: whole(Property::TemporalDepth, min_depth, max_depth, 3)? as u16,
        initial_lifespan: whole(Property::InitialLifespan, 0, max_bursts, 20)? as u32,
        lifespan_growth: lifespan_growth.unwrap_or(3.0) as f32,
        longterm_threshold: whole(Property::LongtermThreshold, 0, max_bursts, 100)? as u32,
    };
    Ok(is_memory.then_some(memory))
}
