//! Training of the twin: it learns, it is repeatable, and it gives the same on every device.

use std::ops::ControlFlow;

use tectum::{Device, Error};
use tectum_control::body::body;
use tectum_control::twin::{Transitions, TwinLayout, TwinRecipe, train};

fn data(name: &str, previous: bool, len: usize) -> Result<(TwinLayout, Transitions), Error> {
    let mut plant = body(name, None)?;
    let layout = TwinLayout::of(plant.spec(), previous)?;
    let transitions = Transitions::simulate(
        plant.require_randomized().expect("random states"),
        &layout,
        len,
        11,
    );
    Ok((layout, transitions))
}

#[test]
fn a_twin_predicts_what_it_was_not_shown() -> Result<(), Error> {
    let recipe = TwinRecipe {
        steps: 600,
        ..TwinRecipe::default()
    };
    for (name, previous) in [("rig", true), ("pendulum", false), ("cart_pole", false)] {
        let (layout, transitions) = data(name, previous, 8000)?;
        let (_, report) = train(
            &layout,
            &transitions,
            &recipe,
            &Device::open("cpu")?,
            1,
            |_, _| ControlFlow::Continue(()),
        )?;
        assert_eq!((report.held_out, report.transitions), (800, 7200));
        // Predicting the mean change scores 1; the rig's stops make it the hardest.
        assert!(report.held_out_loss < 0.03, "{name}: {report:?}");
        assert!(report.first_loss > 0.5, "{name}: {report:?}");
    }
    Ok(())
}

#[test]
fn training_repeats_bit_for_bit_and_agrees_between_devices() -> Result<(), Error> {
    let (layout, transitions) = data("pendulum", false, 400)?;
    let recipe = TwinRecipe {
        steps: 12,
        batch: 64,
        ..TwinRecipe::default()
    };
    let mut trained = Vec::new();
    for id in ["cpu", "vulkan:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: training");
            continue;
        };
        let (first, report) = train(&layout, &transitions, &recipe, &device, 5, |_, _| {
            ControlFlow::Continue(())
        })?;
        let (second, _) = train(&layout, &transitions, &recipe, &device, 5, |_, _| {
            ControlFlow::Continue(())
        })?;
        assert_eq!(first.weights, second.weights, "{id}");
        trained.push((first.weights, report.last_loss));
    }
    for (weights, loss) in &trained[1..] {
        assert!(
            (loss - trained[0].1).abs() < 1e-4 * trained[0].1,
            "{loss} {}",
            trained[0].1
        );
        // AdamW moves a weight whose gradient is near 0 by its sign: rounding may flip one, by a
        // step's length.
        let far = weights
            .iter()
            .zip(&trained[0].0)
            .filter(|(a, b)| (*a - *b).abs() > 1e-3)
            .count();
        assert!(
            far * 100 < weights.len(),
            "{far} of {} weights differ",
            weights.len()
        );
    }
    Ok(())
}

#[test]
fn too_little_data_and_a_loss_that_explodes_are_errors() -> Result<(), Error> {
    let cpu = Device::open("cpu")?;
    let (layout, few) = data("pendulum", false, 99)?;
    let error = train(&layout, &few, &TwinRecipe::default(), &cpu, 0, |_, _| {
        ControlFlow::Continue(())
    })
    .expect_err("too few");
    assert!(error.to_string().contains("99 transitions"), "{error}");
    let (layout, mut transitions) = data("pendulum", false, 200)?;
    transitions.features[5] = f32::NAN;
    let error = train(
        &layout,
        &transitions,
        &TwinRecipe {
            steps: 50,
            ..TwinRecipe::default()
        },
        &cpu,
        0,
        |_, _| ControlFlow::Continue(()),
    )
    .expect_err("NaN");
    assert!(
        error.to_string().contains("the loss is NaN at step"),
        "{error}"
    );
    Ok(())
}

/// It has the weights of the last step, and the report says how many there were.
#[test]
fn a_training_that_is_broken_off_gives_the_twin_so_far() -> Result<(), Error> {
    let (layout, transitions) = data("pendulum", false, 2000)?;
    let recipe = TwinRecipe {
        steps: 400,
        ..TwinRecipe::default()
    };
    let until = |last: usize| {
        let watch = |done: usize, _: f32| {
            if done == last {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        train(
            &layout,
            &transitions,
            &recipe,
            &Device::open("cpu")?,
            5,
            watch,
        )
    };
    let ((early, short), (again, _), (late, long)) = (until(40)?, until(40)?, until(200)?);
    assert_eq!((short.steps, short.best_step, long.steps), (40, 40, 200));
    assert!(early.weights == again.weights && early.weights != late.weights);
    assert!(
        long.held_out_loss < short.held_out_loss,
        "{} after 200 steps, {} after 40",
        long.held_out_loss,
        short.held_out_loss
    );
    Ok(())
}
