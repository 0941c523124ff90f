//! The Gymnasium plants step like Gymnasium: `data/gymnasium_rows.py` generated the table.

use tectum_control::body::body;

/// Two correctly rounded sines may differ in the last place between libraries, which the four
/// stages of the Acrobot's step multiply by its speeds; nothing else may.
const TOLERANCE: f64 = 1e-12;

#[test]
fn steps_agree_with_the_published_equations() {
    let mut reader = csv::Reader::from_reader(include_bytes!("data/gymnasium_rows.csv").as_slice());
    let (mut rows, mut terminations) = (0, 0);
    for (row, record) in reader.records().enumerate() {
        let record = record.expect("the generator's own table");
        let number = |place: usize| record[place].parse::<f64>().expect("a number");
        let name = &record[0];
        let width = if name == "pendulum" { 2 } else { 4 };
        let mut plant = body(name, None).expect("a known body");
        let mut state = vec![0.0; plant.state().expect("exact").len()];
        for (i, value) in state.iter_mut().enumerate().take(width) {
            *value = number(4 + i);
        }
        plant.set_state(&state).expect("finite");
        let step = plant.step(&[number(1) as f32]);
        assert!(
            (step.reward - number(2)).abs() <= TOLERANCE * number(2).abs(),
            "row {row}: reward {}",
            step.reward
        );
        assert_eq!(step.terminated, &record[3] == "1", "row {row}");
        for (i, &given) in plant.state().expect("exact").iter().take(width).enumerate() {
            let expected = number(8 + i);
            assert!(
                (given - expected).abs() <= TOLERANCE * expected.abs().max(1.0),
                "row {row}, number {i}: {given} {expected}"
            );
        }
        rows += 1;
        terminations += usize::from(step.terminated);
    }
    assert_eq!(rows, 3000);
    assert!(
        terminations > 100,
        "only {terminations} of the table's rows terminate"
    );
}
