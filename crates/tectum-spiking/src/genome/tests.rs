//! Genomes read and expanded, case by case.

mod errors;
mod files;
mod morphologies;
mod mutations;
mod spellings;
mod units;

use serde_json::{Value, json};

use super::*;

/// A genome's text from its blueprint and morphologies.
fn document(blueprint: Value, morphologies: Value) -> String {
    json!({"version": "2.1", "blueprint": blueprint, "neuron_morphologies": morphologies})
        .to_string()
}

fn parse(text: &str) -> Genome {
    Genome::parse(text, &GenomeOptions::default()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Areas `source` and `target` of given sizes, the first mapped to the second by one rule.
fn pair(source: [u32; 3], target: [u32; 3], rule: Value) -> Value {
    json!({
        "source": {"block_boundaries": source, "mp_charge_accumulation": true, "cortical_mapping_dst": {"target": [rule]}},
        "target": {"block_boundaries": target, "mp_charge_accumulation": true},
    })
}

fn synapses(genome: &Genome, seed: u64) -> Vec<Synapse> {
    let mut synapses = Vec::new();
    genome.synapses(seed, &mut |synapse| synapses.push(synapse));
    synapses
}

#[test]
fn neurons_go_by_core_number_then_file_order_then_x_y_z_and_place() {
    let area = |size: [u32; 3]| json!({"block_boundaries": size, "mp_charge_accumulation": true});
    let mut last = area([2, 2, 3]);
    last["per_voxel_neuron_cnt"] = json!(2);
    last["firing_threshold"] = json!(1.5);
    last["firing_threshold_increment"] = json!([10, 100, 1000]);
    let text = document(
        json!({"zzzzzz": area([1, 1, 2]), "_fatig": area([1, 1, 1]), "aaaaaa": last, "___pwr": area([1, 1, 1]), "_death": area([1, 1, 1])}),
        json!({}),
    );
    let genome = parse(&text);
    let order = genome
        .areas()
        .iter()
        .map(|area| (area.id.to_string(), area.neurons.clone()))
        .collect::<Vec<_>>();
    let expected = [
        ("_death", 0..1),
        ("_power", 1..2),
        ("_fatig", 2..3),
        ("zzzzzz", 3..5),
        ("aaaaaa", 5..29),
    ];
    assert_eq!(
        order,
        expected.map(|(id, neurons)| (id.to_owned(), neurons))
    );
    assert_eq!(
        (
            genome.core(CoreArea::Power),
            genome.core(CoreArea::Pain),
            genome.neurons()
        ),
        (Some(1), None, 29)
    );
    let area = &genome.areas()[4];
    // x = 1, y = 0, z = 2: voxel (1·2 + 0)·3 + 2 = 8, neurons 5 + 16 and 5 + 17.
    assert_eq!(
        (
            area.first_neuron([1, 0, 2]),
            area.voxel_of(21),
            area.voxel_of(22),
            area.voxel_of(23)
        ),
        (21, [1, 0, 2], [1, 0, 2], [1, 1, 0])
    );
    assert_eq!(
        (area.threshold_at([0, 0, 0]), area.threshold_at([1, 0, 2])),
        (1.5, 2011.5)
    );
    assert_eq!(
        [0, 1, 4, 5, 28].map(|neuron| genome.area_of(neuron)),
        [0, 1, 3, 4, 4]
    );
}

#[test]
fn areas_are_found_by_every_spelling_and_by_a_name_that_is_one_areas_alone() {
    let named = |name: &str| json!({"cortical_name": name, "block_boundaries": [1, 1, 1]});
    let genome = parse(&document(
        json!({"o__mot": named("motor"), "i__one": named("eye"), "i__two": named("eye")}),
        json!({}),
    ));
    let found = [
        "o__mot",
        "o__mot__",
        "b19fbW90X18=",
        "motor",
        "i__two",
        "eye",
        "nothing",
    ]
    .map(|name| genome.area(name));
    assert_eq!(
        found,
        [Some(0), Some(0), Some(0), Some(0), Some(2), None, None]
    );
}

#[test]
fn rules_are_arrays_of_four_to_nine_or_objects() {
    let plain = Plasticity {
        constant: 0.0,
        ltp: 0.0,
        ltd: 0.0,
        window: 0,
    };
    let learning = Plasticity {
        constant: 1.0,
        ltp: 100.0,
        ltd: 2.0,
        window: 4,
    };
    let object = json!({
        "morphology_id": "projector", "morphology_scalar": 2, "postSynapticCurrent_multiplier": -3.0, "plasticity_flag": true,
        "plasticity_constant": 1, "ltp_multiplier": 100, "ltd_multiplier": 2, "plasticity_window": 4, "synaptic_delay_bursts": 3,
        "synapse_attractivity": 25,
    });
    for (rule, scalar, multiplier, plastic, plasticity, delay, attractivity) in [
        (
            json!(["projector", [1, 1, 1], 1, false]),
            [1.0; 3],
            1,
            false,
            plain,
            1,
            80.0,
        ),
        (
            json!(["projector", [1, 2, 3], 1.0, false, 1, 100, 2]),
            [1.0, 2.0, 3.0],
            1,
            false,
            Plasticity {
                window: 0,
                ..learning
            },
            1,
            80.0,
        ),
        (
            json!(["projector", [2], -30, true, 1, 100, 2, 4]),
            [2.0; 3],
            -30,
            true,
            learning,
            1,
            80.0,
        ),
        (
            json!(["projector", 0.5, 255, true, 1, 100, 2, 4, 3]),
            [0.5; 3],
            255,
            true,
            learning,
            3,
            80.0,
        ),
        (object, [2.0; 3], -3, true, learning, 3, 25.0),
    ] {
        let mut blueprint = pair([1, 1, 1], [1, 1, 1], rule.clone());
        blueprint["target"]["synapse_attractivity"] = json!(80);
        blueprint["source"]["synapse_attractivity"] = json!(1);
        let genome = parse(&document(blueprint, json!({})));
        let mapping = &genome.mappings()[0];
        let found = (
            mapping.scalar,
            mapping.multiplier,
            mapping.plastic,
            mapping.plasticity,
            mapping.delay_bursts,
            mapping.attractivity,
        );
        assert_eq!(
            found,
            (scalar, multiplier, plastic, plasticity, delay, attractivity),
            "{rule}"
        );
        // A projector has no vectors that a scalar could scale.
        let scales_nothing = usize::from(scalar != [1.0; 3]);
        let warnings = genome.warnings();
        assert!(
            warnings.len() == scales_nothing
                && warnings.iter().all(|warning| warning.contains("scalar")),
            "{rule}: {warnings:?}"
        );
    }
}

#[test]
fn weights_are_magnitudes_types_are_signs_and_the_current_is_the_sources() {
    let mut blueprint = pair(
        [2, 1, 1],
        [2, 1, 1],
        json!(["block_to_block", 1, -7, false]),
    );
    blueprint["source"]["postsynaptic_current"] = json!(9);
    blueprint["target"]["postsynaptic_current"] = json!(11);
    blueprint["source"]["cortical_mapping_dst"]["source"] = json!([
        ["block_to_block", 1, 255, false],
        ["block_to_block", 1, 0, false]
    ]);
    let genome = parse(&document(blueprint, json!({})));
    let synapse = |source: u32, target: u32, weight: u8, inhibitory: bool, mapping: u32| Synapse {
        source,
        target,
        weight,
        psp: 9,
        inhibitory,
        mapping,
    };
    let expected = [
        synapse(0, 2, 7, true, 0),
        synapse(1, 3, 7, true, 0),
        // Autapses, and the same pairs again by another mapping.
        synapse(0, 0, 255, false, 1),
        synapse(1, 1, 255, false, 1),
        synapse(0, 0, 0, false, 2),
        synapse(1, 1, 0, false, 2),
    ];
    assert_eq!(synapses(&genome, 3), expected);
}

#[test]
fn every_neuron_of_a_source_voxel_reaches_every_neuron_of_a_target_voxel() {
    let mut blueprint = pair([2, 1, 1], [2, 1, 1], json!(["block_to_block", 1, 1, false]));
    blueprint["source"]["per_voxel_neuron_cnt"] = json!(2);
    blueprint["target"]["per_voxel_neuron_cnt"] = json!(3);
    let genome = parse(&document(blueprint, json!({})));
    let pairs = synapses(&genome, 0)
        .iter()
        .map(|synapse| (synapse.source, synapse.target))
        .collect::<Vec<_>>();
    let expected = [
        (0, [4, 5, 6]),
        (1, [4, 5, 6]),
        (2, [7, 8, 9]),
        (3, [7, 8, 9]),
    ];
    assert_eq!(
        pairs,
        expected
            .iter()
            .flat_map(|(source, targets)| targets.map(|target| (*source, target)))
            .collect::<Vec<_>>()
    );
    assert_eq!(
        (genome.estimate().synapses, genome.estimate().exact),
        (12, true)
    );
}

#[test]
fn attractivity_is_a_probability_that_depends_on_the_pair_alone() {
    let blueprint = pair(
        [20, 20, 1],
        [25, 10, 1],
        json!({"morphology_id": "all_to_all", "postSynapticCurrent_multiplier": 1, "plasticity_flag": false, "synapse_attractivity": 30}),
    );
    let genome = parse(&document(blueprint, json!({})));
    let all = synapses(&genome, 5);
    // 100,000 draws of 0.3: σ = √(n·p·q) = 145.
    assert!(all.len().abs_diff(30_000) < 4 * 145, "{}", all.len());
    assert_eq!(
        (genome.estimate().synapses, genome.estimate().exact),
        (100_000, false)
    );
    let mut parts = Vec::new();
    for sources in [300..400, 0..1, 1..300] {
        genome.mapping_synapses(0, sources, 5, &mut |synapse| parts.push(synapse));
    }
    parts.sort();
    let mut sorted = all.clone();
    sorted.sort();
    assert_eq!(parts, sorted);
    // Another seed gives other draws: of 30,000 about 9,000 remain, σ = √(30,000·0.3·0.7) = 79.
    let other = synapses(&genome, 6)
        .into_iter()
        .collect::<std::collections::BTreeSet<_>>();
    let common = all.iter().filter(|synapse| other.contains(synapse)).count();
    assert!(common.abs_diff(9_000) < 4 * 79, "{common}");
}

#[test]
fn a_source_draws_its_random_target_evenly_and_for_itself() {
    let genome = parse(&document(
        pair([30, 10, 10], [3, 1, 1], json!(["randomizer", 1, 1, false])),
        json!({}),
    ));
    let all = synapses(&genome, 9);
    assert_eq!(all.len(), 3_000);
    for target in 3_000..3_003 {
        // σ = √(3,000 · 1/3 · 2/3) = 26.
        let count = all
            .iter()
            .filter(|synapse| synapse.target == target)
            .count();
        assert!(count.abs_diff(1_000) < 4 * 26, "{count}");
    }
    assert_eq!(synapses(&genome, 9), all);
    assert_ne!(synapses(&genome, 10), all);
}

#[test]
fn memory_areas_are_marked_by_flag_or_subgroup_and_their_morphologies_make_no_synapses() {
    let memory = json!({"block_boundaries": [1, 1, 1], "sub_group_id": "MEMORY", "temporal_depth": 2, "init_lifespan": 9, "mp_charge_accumulation": true});
    let flagged =
        json!({"block_boundaries": [1, 1, 1], "is_mem_type": true, "mp_charge_accumulation": true});
    let rule = |name: &str| json!([[name, [1, 1, 1], 1, false]]);
    let source = json!({"block_boundaries": [2, 1, 1], "mp_charge_accumulation": true, "cortical_mapping_dst": {
        "memory": [["memory", 1, 1, false], ["episodic_memory", 1, 1, false]], "flagge": rule("memory_replay"), "source": [["associative_memory", 1, 1, false], ["bidirectional_stdp", 1, 1, false]],
    }});
    let genome = parse(&document(
        json!({"source": source, "memory": memory, "flagge": flagged}),
        json!({"memory": {"type": "functions", "parameters": {}}}),
    ));
    let kinds = genome
        .mappings()
        .iter()
        .map(|mapping| mapping.morphology.clone())
        .collect::<Vec<_>>();
    use PlasticMorphology::{Associative, Memory, Replay};
    assert_eq!(
        kinds,
        [Memory, Memory, Replay, Associative, Associative].map(Morphology::Plastic)
    );
    assert_eq!(
        (synapses(&genome, 0).len(), genome.estimate().synapses),
        (0, 0)
    );
    let properties = |index: usize| genome.areas()[index].properties.memory;
    let expected = MemoryProperties {
        temporal_depth: 2,
        initial_lifespan: 9,
        lifespan_growth: 3.0,
        longterm_threshold: 100,
    };
    assert_eq!((properties(0), properties(1)), (None, Some(expected)));
    assert_eq!(properties(2).map(|memory| memory.temporal_depth), Some(3));
    assert_eq!(genome.areas()[1].role, AreaRole::Memory);
}

#[test]
fn a_function_without_a_definition_is_reported_or_refused() {
    let text = document(
        pair([1, 1, 1], [1, 1, 1], json!(["vortex", 1, 1, false])),
        json!({"vortex": {"type": "functions", "parameters": {}}}),
    );
    let genome = parse(&text);
    assert_eq!(genome.mappings()[0].morphology, Morphology::Unknown);
    assert_eq!(
        genome.warnings(),
        [
            "area source: destination \"target\": rule 0: morphology \"vortex\": a function without a known definition; no synapses"
        ]
    );
    let error = Genome::parse(
        &text,
        &GenomeOptions {
            strict: true,
            ..GenomeOptions::default()
        },
    )
    .expect_err("strict");
    assert_eq!(error.kind(), tectum::ErrorKind::Unsupported);
    assert!(
        error.to_string().contains(
            "cortical_mapping_dst: destination \"target\": rule 0: morphology \"vortex\""
        ),
        "{error}"
    );
}

#[test]
fn physiology_and_regions_are_read() {
    let text = json!({
        "version": "2.0", "genome_title": "t", "physiology": {"burst_delay": 0.0125, "plasticity_queue_depth": 7, "quantization_precision": "fp32", "sleep": {}},
        "blueprint": {"aaaaaa": {"block_boundaries": [1, 1, 1], "mp_charge_accumulation": true}},
        "brain_regions": {"root": {"title": "all", "parent_region_id": null, "areas": ["aaaaaa", "gone__"]}},
    });
    let genome = parse(&text.to_string());
    assert_eq!(
        *genome.physiology(),
        Physiology {
            timestep_s: 0.0125,
            states_timestep: true,
            plasticity_queue_depth: 7,
            quantization_precision: Some("fp32".to_owned())
        }
    );
    assert_eq!(
        genome.regions(),
        [Region {
            id: "root".to_owned(),
            title: "all".to_owned(),
            parent: None,
            areas: vec![0]
        }]
    );
    assert_eq!(
        genome.warnings(),
        ["brain_regions: \"root\": \"gone__\" is no area of the genome"]
    );
    assert_eq!((genome.title(), genome.version()), ("t", "2.0"));
}

#[test]
fn warnings_are_bounded() {
    let mut area = json!({"block_boundaries": [1, 1, 1], "mp_charge_accumulation": true});
    for key in 0..1000 {
        area[format!("key{key}")] = json!(0);
    }
    let genome = parse(&document(json!({"aaaaaa": area}), json!({})));
    assert_eq!(genome.warnings().len(), 201);
    assert_eq!(
        (
            genome.warnings()[0].as_str(),
            genome.warnings()[200].as_str()
        ),
        ("area aaaaaa: key \"key0\" is unknown", "and 800 more")
    );
}
