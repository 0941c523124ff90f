//! `tectum check rig`.

use std::process::Command;

use serde_json::Value;

#[test]
fn the_check_holds_both_regulators_against_rigs_that_differ_more_and_more() {
    let output = Command::new(env!("CARGO_BIN_EXE_tectum"))
        .args(["check", "rig", "--seeds", "2", "--json"])
        .output()
        .expect("it starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a list");
    let of = |controller: &str| {
        rows.iter()
            .filter(|row| row["controller"] == controller)
            .collect::<Vec<_>>()
    };
    let (told, adaptive) = (of("lqr"), of("adaptive"));
    assert_eq!((rows.len(), told.len(), adaptive.len()), (10, 5, 5));
    for row in &adaptive {
        assert_eq!(
            (&row["summary"]["trials"], &row["summary"]["met_target"]),
            (&Value::from(2), &Value::from(2)),
            "{row}"
        );
    }
    // The regulator designed for the identified rig balances that rig, but not one with late and
    // noisy readings.
    assert!(
        told[0]["summary"]["min_upright"]
            .as_f64()
            .is_some_and(|share| share > 0.8),
        "{}",
        told[0]
    );
    assert_eq!(told[3]["summary"]["met_target"], 0, "{}", told[3]);
}
