//! Every spelling of every property gives the same area.

use serde_json::{Value, json};

use super::{document, parse};
use crate::genome::Genome;
use crate::genome::property::{Property, spellings};

/// A value of a property that differs from the default.
fn value(property: Property) -> Value {
    match property {
        Property::Name => json!("n"),
        Property::Group => json!("OPU"),
        Property::SubGroup => json!("MEMORY"),
        Property::SizeX
        | Property::SizeY
        | Property::SizeZ
        | Property::PerVoxel
        | Property::Devices => json!(3),
        Property::PositionX | Property::PositionY | Property::PositionZ => json!(-4),
        Property::Leak | Property::LeakVariability | Property::Excitability => json!(0.25),
        Property::Threshold
        | Property::ThresholdLimit
        | Property::Degeneration
        | Property::CurrentMax => json!(2.5),
        Property::ThresholdIncrementX
        | Property::ThresholdIncrementY
        | Property::ThresholdIncrementZ => json!(0.5),
        Property::Refractory
        | Property::ConsecutiveFireLimit
        | Property::Snooze
        | Property::Current => json!(7),
        Property::ChargeAccumulation
        | Property::UniformDistribution
        | Property::DrivenPsp
        | Property::IsMemory => json!(true),
        Property::Attractivity => json!(40),
        Property::TemporalDepth
        | Property::InitialLifespan
        | Property::LifespanGrowth
        | Property::LongtermThreshold => json!(5),
        Property::Destinations => json!({"aaaaaa": [["lateral_+x", 1, 1, false]]}),
        Property::Shown | Property::Unsupported => json!(true),
    }
}

fn flat(property: Property, key: Option<String>) -> Genome {
    let mut blueprint = json!({});
    for (code, size) in [
        ("___bbx", Property::SizeX),
        ("___bby", Property::SizeY),
        ("___bbz", Property::SizeZ),
    ] {
        if size != property || key.is_none() {
            blueprint[format!("_____10c-aaaaaa-cx-{code}-i")] = json!(2);
        }
    }
    // The other memory properties have an effect only in memory areas.
    if matches!(
        property,
        Property::TemporalDepth
            | Property::InitialLifespan
            | Property::LifespanGrowth
            | Property::LongtermThreshold
    ) {
        blueprint["_____10c-aaaaaa-cx-memory-b"] = json!(true);
    }
    if let Some(key) = key {
        blueprint[key] = value(property);
    }
    parse(&document(blueprint, json!({})))
}

fn hierarchical(property: Property, key: &str) -> Genome {
    let mut area = json!({"block_boundaries": [2, 2, 2]});
    if matches!(
        property,
        Property::TemporalDepth
            | Property::InitialLifespan
            | Property::LifespanGrowth
            | Property::LongtermThreshold
    ) {
        area["is_mem_type"] = json!(true);
    }
    area[key] = value(property);
    parse(&document(json!({"aaaaaa": area}), json!({})))
}

#[test]
fn every_code_under_either_section_with_any_ending_and_every_key_says_the_same() {
    for (property, code, keys) in spellings() {
        let without = flat(*property, None);
        let first = flat(*property, Some(format!("_____10c-aaaaaa-cx-{code}-i")));
        let has_effect = !matches!(property, Property::Shown | Property::Unsupported);
        assert_eq!(
            (first.areas(), first.mappings()) != (without.areas(), without.mappings()),
            has_effect,
            "{property:?} {code}"
        );
        for section in ["cx", "nx"] {
            for ending in ["i", "f", "t", "b", "d"] {
                let other = flat(
                    *property,
                    Some(format!("_____10c-aaaaaa-{section}-{code}-{ending}")),
                );
                assert_eq!(
                    (other.areas(), other.mappings()),
                    (first.areas(), first.mappings()),
                    "{code} {section} {ending}"
                );
            }
        }
        for key in *keys {
            let other = hierarchical(*property, key);
            assert_eq!(
                (other.areas(), other.mappings()),
                (first.areas(), first.mappings()),
                "{code} {key}"
            );
            let is_known = !other
                .warnings()
                .iter()
                .any(|warning| warning.contains("unknown"));
            assert!(is_known, "{key}: {:?}", other.warnings());
        }
    }
}

#[test]
fn triples_are_arrays_or_objects_by_axis_or_by_side() {
    let area = |size: Value, position: Value, increment: Value| {
        let area = json!({"cortical_dimensions": size, "coordinate_3d": position, "firing_threshold_increment": increment});
        let genome = parse(&document(json!({"aaaaaa": area}), json!({})));
        let area = genome.areas()[0].clone();
        (
            area.size,
            area.position,
            area.properties.threshold_increment,
        )
    };
    let expected = ([1, 2, 3], [-1, 0, 1], [0.5, 0.0, 1.0]);
    assert_eq!(
        area(json!([1, 2, 3]), json!([-1, 0, 1]), json!([0.5, 0, 1])),
        expected
    );
    assert_eq!(
        area(
            json!({"x": 1, "y": 2, "z": 3}),
            json!({"z": 1, "y": 0, "x": -1}),
            json!({"x": 0.5, "y": 0, "z": 1})
        ),
        expected
    );
    assert_eq!(
        area(
            json!({"width": 1, "height": 2, "depth": 3}),
            json!([-1.0, 0, 1]),
            json!(0)
        ),
        (expected.0, expected.1, [0.0; 3])
    );
}

#[test]
fn ids_of_base64_are_the_same_areas_in_keys_destinations_and_regions() {
    // bzY2b3V0X18= is o66out.
    let (plain, coded) = ("o66out", "bzY2b3V0X18=");
    let text = |area: &str, destination: &str| {
        let mut blueprint = json!({});
        for code in ["___bbx", "___bby", "___bbz"] {
            blueprint[format!("_____10c-{area}-cx-{code}-i")] = json!(2);
        }
        blueprint[format!("_____10c-{area}-nx-mp_acc-b")] = json!(true);
        blueprint[format!("_____10c-{area}-cx-dstmap-d")] =
            json!({destination: [["projector", 1, 1, false]]});
        json!({"version": "2.1", "blueprint": blueprint, "brain_regions": {"r": {"areas": [destination]}}}).to_string()
    };
    let all = [
        (plain, plain),
        (plain, coded),
        (coded, plain),
        (coded, coded),
    ]
    .map(|(area, destination)| parse(&text(area, destination)));
    assert_eq!(
        (all[0].areas()[0].id.to_string(), all[0].warnings().len()),
        (plain.to_owned(), 0)
    );
    assert!(all.iter().all(|genome| *genome == all[0]), "{all:?}");
}

/// What a network is made of, and what is said of the genome.
fn network(property: Property, key: Option<&str>) -> (Vec<u64>, String, Vec<String>) {
    let mut area = json!({"block_boundaries": [2, 2, 2], "mp_charge_accumulation": false,
        "cortical_mapping_dst": {"aaaaaa": [["lateral_-x", 1, 1, false], ["lateral_-y", 1, 1, false]]}});
    if let Some(key) = key {
        area[key] = match (property, key) {
            (_, "block_boundaries" | "coordinate_3d" | "firing_threshold_increment") => {
                json!([3, 2, 4])
            }
            // Below the current of the area, which is 1.
            (Property::CurrentMax, _) => json!(0.5),
            _ => value(property),
        };
    }
    let genome = parse(&document(json!({"aaaaaa": area}), json!({})));
    let connected = crate::connect(
        &genome,
        crate::ConnectOptions::default(),
        &mut tectum::WorkProgress::ignore,
    )
    .expect("it works");
    let parts = connected.network.fingerprint.words().to_vec();
    let role = genome.areas()[0].role.name().to_owned();
    (parts, role, [genome.warnings(), &connected.notes].concat())
}

#[test]
fn every_property_has_an_effect_or_is_reported_or_describes() {
    let describes = [
        Property::Name,
        Property::PositionX,
        Property::Devices,
        Property::Shown,
    ];
    let plain = network(Property::Name, None);
    let triples = [
        (Property::SizeX, "dimensions"),
        (Property::PositionX, "coordinate_3d"),
        (Property::ThresholdIncrementX, "firing_threshold_increment"),
    ];
    let keys = spellings()
        .iter()
        .flat_map(|(property, _, keys)| keys.iter().map(|key| (*property, *key)))
        .chain(triples);
    for (property, key) in keys {
        // Of these the plain area has one spelling already.
        let key = match property {
            Property::SizeX => "block_boundaries",
            Property::Destinations => "cortical_mapping_dst",
            Property::ChargeAccumulation => "mp_charge_accumulation",
            _ => key,
        };
        assert_eq!(
            network(property, Some(key)) == plain,
            describes.contains(&property),
            "{property:?} {key}"
        );
    }
}
