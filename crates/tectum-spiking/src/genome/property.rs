//! Properties of areas and every spelling of each.

/// A property of an area in a file. Boxes and positions count as three properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Property {
    Name,
    Group,
    SubGroup,
    SizeX,
    SizeY,
    SizeZ,
    PositionX,
    PositionY,
    PositionZ,
    PerVoxel,
    Devices,
    Threshold,
    ThresholdIncrementX,
    ThresholdIncrementY,
    ThresholdIncrementZ,
    ThresholdLimit,
    Leak,
    LeakVariability,
    Refractory,
    Excitability,
    ConsecutiveFireLimit,
    Snooze,
    ChargeAccumulation,
    UniformDistribution,
    DrivenPsp,
    Current,
    CurrentMax,
    Degeneration,
    Attractivity,
    IsMemory,
    TemporalDepth,
    InitialLifespan,
    LifespanGrowth,
    LongtermThreshold,
    Destinations,
    /// Has no effect on a run.
    Shown,
    /// Changes a run in the newest reference, not here.
    Unsupported,
}

impl Property {
    /// Whether its null is the same as its absence: no value of it changes a run, or only a text
    /// does.
    pub fn may_be_null(self) -> bool {
        matches!(
            self,
            Property::Name
                | Property::SubGroup
                | Property::Devices
                | Property::LeakVariability
                | Property::CurrentMax
                | Property::Degeneration
                | Property::Shown
                | Property::Unsupported
        )
    }
}

/// A property, its code in flat files, its keys in hierarchical files.
type Spellings = (Property, &'static str, &'static [&'static str]);

/// Keys whose value is a triple (an array, or an object of x, y and z or of width, height and
/// depth).
const TRIPLES: [([Property; 3], &[&str]); 3] = [
    (
        [Property::SizeX, Property::SizeY, Property::SizeZ],
        &["block_boundaries", "cortical_dimensions", "dimensions"],
    ),
    (
        [
            Property::PositionX,
            Property::PositionY,
            Property::PositionZ,
        ],
        &[
            "relative_coordinate",
            "coordinate_3d",
            "coordinates_3d",
            "cortical_coordinates",
        ],
    ),
    (
        [
            Property::ThresholdIncrementX,
            Property::ThresholdIncrementY,
            Property::ThresholdIncrementZ,
        ],
        &[
            "firing_threshold_increment",
            "neuron_fire_threshold_increment",
        ],
    ),
];

const SPELLINGS: &[Spellings] = &[
    (Property::Name, "__name", &["cortical_name", "name"]),
    (
        Property::Group,
        "_group",
        &["group_id", "cortical_group", "cortical_type"],
    ),
    (
        Property::SubGroup,
        "subgrp",
        &["sub_group_id", "cortical_sub_group"],
    ),
    (Property::SizeX, "___bbx", &[]),
    (Property::SizeY, "___bby", &[]),
    (Property::SizeZ, "___bbz", &[]),
    (Property::PositionX, "rcordx", &[]),
    (Property::PositionY, "rcordy", &[]),
    (Property::PositionZ, "rcordz", &[]),
    (
        Property::PerVoxel,
        "_n_cnt",
        &[
            "per_voxel_neuron_cnt",
            "cortical_neuron_per_vox_count",
            "neurons_per_voxel",
        ],
    ),
    (Property::Devices, "devcnt", &["dev_count"]),
    (
        Property::Threshold,
        "fire_t",
        &["firing_threshold", "neuron_fire_threshold"],
    ),
    (
        Property::ThresholdIncrementX,
        "ftincx",
        &["firing_threshold_increment_x"],
    ),
    (
        Property::ThresholdIncrementY,
        "ftincy",
        &["firing_threshold_increment_y"],
    ),
    (
        Property::ThresholdIncrementZ,
        "ftincz",
        &["firing_threshold_increment_z"],
    ),
    (
        Property::ThresholdLimit,
        "fthlim",
        &["firing_threshold_limit", "neuron_firing_threshold_limit"],
    ),
    (
        Property::Leak,
        "leak_c",
        &["leak_coefficient", "neuron_leak_coefficient"],
    ),
    (
        Property::LeakVariability,
        "leak_v",
        &["leak_variability", "neuron_leak_variability"],
    ),
    (
        Property::Refractory,
        "refrac",
        &["refractory_period", "neuron_refractory_period"],
    ),
    (Property::Excitability, "excite", &["neuron_excitability"]),
    (
        Property::ConsecutiveFireLimit,
        "c_fr_c",
        &[
            "consecutive_fire_cnt_max",
            "consecutive_fire_count",
            "consecutive_fire_limit",
            "neuron_consecutive_fire_count",
        ],
    ),
    (
        Property::Snooze,
        "snooze",
        &["snooze_length", "snooze_period", "neuron_snooze_period"],
    ),
    (
        Property::ChargeAccumulation,
        "mp_acc",
        &["mp_charge_accumulation", "neuron_mp_charge_accumulation"],
    ),
    (
        Property::UniformDistribution,
        "pspuni",
        &[
            "psp_uniform_distribution",
            "neuron_psp_uniform_distribution",
        ],
    ),
    (
        Property::DrivenPsp,
        "mp_psp",
        &["mp_driven_psp", "neuron_mp_driven_psp"],
    ),
    (
        Property::Current,
        "pstcr_",
        &["postsynaptic_current", "neuron_post_synaptic_potential"],
    ),
    (
        Property::CurrentMax,
        "pstcrm",
        &[
            "postsynaptic_current_max",
            "neuron_post_synaptic_potential_max",
        ],
    ),
    (
        Property::Degeneration,
        "de_gen",
        &["degeneration", "neuron_degeneracy_coefficient"],
    ),
    (
        Property::Attractivity,
        "synatt",
        &["synapse_attractivity", "cortical_synaptic_attractivity"],
    ),
    (Property::IsMemory, "memory", &["is_mem_type"]),
    (Property::TemporalDepth, "tmpdpt", &["temporal_depth"]),
    (
        Property::InitialLifespan,
        "mem_ls",
        &["init_lifespan", "neuron_init_lifespan"],
    ),
    (
        Property::LifespanGrowth,
        "mem_gr",
        &["lifespan_growth_rate", "neuron_lifespan_growth_rate"],
    ),
    (
        Property::LongtermThreshold,
        "mem__t",
        &["longterm_mem_threshold", "neuron_longterm_mem_threshold"],
    ),
    (
        Property::Destinations,
        "dstmap",
        &["cortical_mapping_dst", "cortical_destinations"],
    ),
    (
        Property::Shown,
        "gd_vis",
        &["visualization", "visible", "cortical_visibility"],
    ),
    (
        Property::Shown,
        "2dcorx",
        &[
            "2d_coordinate",
            "coordinates_2d",
            "coordinate_2d",
            "cortical_coordinates_2d",
        ],
    ),
    (
        Property::Shown,
        "2dcory",
        &[
            "cortical_id",
            "parent_region_id",
            "visualization_voxel_granularity",
            "location_generation_type",
        ],
    ),
    (
        Property::Shown,
        "__rand",
        &["burst_engine_activation", "burst_engine_active"],
    ),
    (Property::Unsupported, "hmlk", &["rate_modulated_leak"]),
    (Property::Unsupported, "mplrn", &["mp_learning_enabled"]),
    (Property::Unsupported, "mnwin", &["min_window_activity"]),
    (Property::Unsupported, "scnsk", &["scan_skip_density"]),
    (Property::Unsupported, "twinrf", &["memory_twin_of"]),
];

/// The property of a flat file's code without its suffix.
pub(super) fn from_code(code: &str) -> Option<Property> {
    SPELLINGS
        .iter()
        .find(|(_, known, _)| *known == code)
        .map(|(property, ..)| *property)
}

/// The property of a hierarchical file's key.
pub(super) fn from_key(key: &str) -> Option<Property> {
    SPELLINGS
        .iter()
        .find(|(.., keys)| keys.contains(&key))
        .map(|(property, ..)| *property)
}

/// The three properties of a hierarchical file's key whose value is a triple.
pub(super) fn from_triple(key: &str) -> Option<[Property; 3]> {
    TRIPLES
        .iter()
        .find(|(_, keys)| keys.contains(&key))
        .map(|(properties, _)| *properties)
}

/// Every spelling, for tests: code, then keys.
#[cfg(test)]
pub(super) fn spellings() -> &'static [Spellings] {
    SPELLINGS
}
