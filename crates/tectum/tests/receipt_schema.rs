//! The receipt's JSON against its published schema, in both directions: no undescribed field, no
//! described field missing.

use serde_json::Value;
use tectum::{ContentHash, Device, Error, InjectedFault, PlanBuilder, Recovery, Session};

/// Checks the parts of JSON Schema that `receipt.schema.json` uses.
fn faults(root: &Value, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    if let Some(path) = schema.get("$ref").and_then(Value::as_str) {
        let definition = root
            .pointer(path.trim_start_matches('#'))
            .unwrap_or_else(|| panic!("{path} is not in the schema"));
        return faults(root, definition, value, place, found);
    }
    if let Some(expected) = schema.get("const") {
        found.extend((expected != value).then(|| format!("{place}: {value} is not {expected}")));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
        found.extend(
            (!allowed.contains(value))
                .then(|| format!("{place}: {value} is not among {allowed:?}")),
        );
    }
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    let fits = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => value.is_null(),
    };
    if !kinds.is_empty() && !kinds.iter().any(fits) {
        found.push(format!("{place}: {value} is no {kinds:?}"));
    }
    for item in value.as_array().into_iter().flatten() {
        if let Some(schema) = schema.get("items") {
            faults(root, schema, item, &format!("{place}[]"), found);
        }
    }
    let (Some(described), Some(object)) = (
        schema.get("properties").and_then(Value::as_object),
        value.as_object(),
    ) else {
        return;
    };
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        found.extend((!object.contains_key(name)).then(|| format!("{place}.{name} is missing")));
    }
    for (name, value) in object {
        match described.get(name) {
            Some(schema) => faults(root, schema, value, &format!("{place}.{name}"), found),
            None => found.push(format!("{place}.{name} is not described")),
        }
    }
}

#[test]
fn receipts_are_as_the_schema_says_on_every_device() -> Result<(), Error> {
    let schema: Value =
        serde_json::from_str(include_str!("../receipt.schema.json")).expect("the schema is JSON");
    for id in ["cpu", "null", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            println!("skipped: {id} is absent: its receipt");
            continue;
        };
        let mut plan = PlanBuilder::new("receipt");
        let (x, y) = (
            plan.input("x", tectum::DType::F32, 8),
            plan.output("y", tectum::DType::F32, 8),
        );
        plan.unary("exp", x, y)?;
        let mut run = plan.finish()?.compile(&device)?;
        let mut session =
            Session::of_shared_work(&[device.clone(), device.clone(), Device::open("null")?])?;
        session.uses(&run);
        for _ in 0..3 {
            session.run(&mut run)?;
        }
        session.record_fallback("nothing", "a test");
        session.record_injected_fault(InjectedFault {
            fault: "nan@1".into(),
            tick: Some(25),
        });
        session.recovered(Recovery {
            tick: 25,
            reason: "a test".into(),
            injected: true,
            from: Some(id.into()),
            to: None,
            snapshot_tick: 20,
            resumed_at_tick: None,
            ticks_lost: 6,
            safe_ticks: 1,
        });
        let launches = run.trace()?;
        assert_eq!(
            (
                launches.len(),
                launches[0].kernel.as_str(),
                launches[0].ns.is_some()
            ),
            (1, "exp_f32", id != "null"),
            "{id}"
        );
        session.traced(launches);
        session.record_workload(serde_json::json!({ "body": "rig", "body_settings": {}, "brain": "pid", "brain_settings": { "kp": 2.0 } }));
        let receipt = serde_json::to_value(session.receipt()).expect("receipts are JSON");
        let mut found = Vec::new();
        faults(&schema, &schema, &receipt, "receipt", &mut found);
        assert!(found.is_empty(), "{id}: {found:#?}");
        assert_eq!(
            (
                receipt["runs"].as_u64(),
                receipt["totals"]["launches"].as_u64()
            ),
            (Some(3), Some(3))
        );
        let others: Vec<_> = receipt["other_devices"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|other| other["id"].as_str())
            .collect();
        assert_eq!(
            others,
            if id == "null" {
                vec![]
            } else {
                vec![Some("null")]
            },
            "each other device once"
        );
        assert_eq!(
            receipt["device"]["software"].as_bool(),
            Some(device.info().software)
        );
        // The hash is that of what ran: of native code on the CPU, of the WGSL elsewhere.
        let kernel = tectum::operation::kernels()
            .into_iter()
            .find(|kernel| kernel.name() == "exp_f32")
            .expect("in the table");
        let code: Vec<_> = receipt["code"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|code| ["kernel", "form", "hash"].map(|key| code[key].as_str()))
            .collect();
        let (form, hash) = if id == "cpu" {
            ("native", kernel.native_hash())
        } else {
            ("device", ContentHash::of(kernel.wgsl().as_bytes()))
        };
        assert_eq!(
            code,
            [[Some("exp_f32"), Some(form), Some(hash.to_string().as_str())]],
            "{id}"
        );
        assert!(receipt["trace"].is_null(), "no loop ran");
        // The check itself can fail.
        let mut broken = receipt.clone();
        broken["runs"] = Value::from("three");
        broken["surplus"] = Value::Null;
        faults(&schema, &schema, &broken, "receipt", &mut found);
        assert_eq!(found.len(), 2);
    }
    Ok(())
}
