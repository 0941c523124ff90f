//! The sample recording is what the example records.

#[path = "../examples/record_rig.rs"]
#[allow(dead_code, reason = "an example's main")]
mod record_rig;

#[test]
fn the_sample_is_what_the_example_records() {
    let made = record_rig::recording().expect("a recording");
    let shipped = std::str::from_utf8(tectum_control::SAMPLES[0].files[0].1).expect("text");
    assert_eq!(made.lines().count(), shipped.lines().count());
    let differs = made
        .lines()
        .zip(shipped.lines())
        .position(|(made, shipped)| made != shipped);
    assert_eq!(
        differs, None,
        "record it again: cargo run -p tectum-control --example record_rig -- crates/tectum-control/samples/sample-recording.csv"
    );
}
