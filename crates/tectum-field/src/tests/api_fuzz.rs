//! Fields under random calls, valid and invalid, each cycle compared with the float64 reference:
//! invalid calls give typed errors and change nothing.

use tectum::ErrorKind;

use super::*;
use tectum_bench::api_fuzz;
use tectum_bench::api_fuzz::Random;

struct World {
    random: Random,
    field: Simulation,
    saved: Vec<State>,
    journal: Vec<String>,
}

fn is_invalid<T: std::fmt::Debug>(result: tectum::Result<T>) {
    let error = result.expect_err("the caller's mistake");
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        for _ in 0..4 {
            let size = |random: &mut Random| random.pick(&[0, 3, 4, 8, 66, 1 << 32, usize::MAX]);
            let (cells, channels) = (
                [size(&mut random), size(&mut random), size(&mut random)],
                random.pick(&[0, 32, 33, 256, 288, usize::MAX]),
            );
            let is_wrong = cells
                .iter()
                .any(|size| !(4..=64).contains(size) || size % 4 != 0)
                || !(32..=256).contains(&channels)
                || channels % 32 != 0;
            if is_wrong {
                is_invalid(Shape::new(cells, channels));
            }
        }
        let shape =
            Shape::new(random.pick(&[[4, 4, 4], [8, 4, 4], [4, 8, 4]]), 32).expect("a field");
        let (boundary, storage) = (
            random.pick(&Boundary::ALL),
            random.pick(&[Storage::F32, Storage::F32, Storage::Bf16]),
        );
        let options = Options {
            sensors: 1 + random.below(9) as usize,
            motors: 1 + random.below(6) as usize,
            boundary,
            seed,
            patterns: random.pick(&[0, 3]),
            storage,
        };
        let many = random.pick(&[0, 257, usize::MAX]);
        is_invalid(Simulation::new(
            shape,
            Options {
                sensors: many,
                ..options
            },
            &cpu(),
        ));
        is_invalid(Simulation::new(
            shape,
            Options {
                motors: many,
                ..options
            },
            &cpu(),
        ));
        is_invalid(Simulation::new(
            shape,
            Options {
                patterns: 4097,
                ..options
            },
            &cpu(),
        ));
        is_invalid(Simulation::split(shape, options, &[]));
        let field = match random.below(3) {
            0 if shape.cells()[0] == 8 => Simulation::split(shape, options, &[cpu(), cpu()]),
            _ => Simulation::new(shape, options, &cpu()),
        };
        let journal = vec![format!("{shape:?} {options:?}")];
        Self {
            random,
            field: field.expect("it compiles"),
            saved: Vec::new(),
            journal,
        }
    }

    fn call(&mut self) {
        match self.random.below(10) {
            0..5 => self.tick(),
            5 => self.tick_wrong(),
            6 => self.coefficients(),
            7 => self.save_or_set(),
            8 => self.set_wrong(),
            _ => self.look(),
        }
    }

    fn tick(&mut self) {
        let count = self.field.options().sensors;
        let number = |random: &mut Random| {
            random.pick(&[0.0, 0.5, -1.0, 1.0, 0.1, f32::NAN, f32::INFINITY, -1e30])
        };
        let sensors: Vec<f32> = (0..count).map(|_| number(&mut self.random)).collect();
        let reward = number(&mut self.random);
        self.journal.push(format!("tick {sensors:?} {reward}"));
        let before = self.field.state().expect("readable");
        let told = self.field.tick(&sensors, reward).expect("it runs");
        let after = self.field.state().expect("readable");
        assert_eq!(
            (after.cycle, self.field.cycle()),
            (before.cycle + 1, before.cycle + 1)
        );
        // The field's input: clamped to ±1, 0 for a NaN.
        let held: Vec<f32> = sensors
            .iter()
            .map(|sensor| {
                if sensor.is_nan() {
                    0.0
                } else {
                    sensor.clamp(-1.0, 1.0)
                }
            })
            .collect();
        let reward = if reward.is_nan() {
            0.0
        } else {
            reward.clamp(-1.0, 1.0)
        };
        let cycle = Cycle {
            shape: self.field.shape(),
            options: self.field.options(),
            coefficients: self.field.coefficients(),
            sensors: &held,
            reward,
        };
        let places = cycle.places(&before);
        let place = places
            .iter()
            .find(|(place, _)| place.cell == told.place && place.kind == told.place_kind)
            .expect("a site's centre");
        assert!(
            place.1 < TIE && cycle.recall_margin(&before, &told.recall) < TIE,
            "{told:?}"
        );
        for found in differences(
            &cycle.advance(&before, Some(place.0), Some(&told.recall)),
            &after,
            &told,
            cycle.coefficients.saturation,
        ) {
            assert!(found.is_within(), "{found:?}");
        }
    }

    fn tick_wrong(&mut self) {
        let count = self.field.options().sensors;
        let given = self.random.pick(&[0, count + 1, count - 1, 300]);
        self.journal.push(format!("tick of {given} sensors"));
        if given != count {
            is_invalid(self.field.tick(&vec![0.0; given], 0.0));
        }
    }

    fn coefficients(&mut self) {
        let mut coefficients = Coefficients {
            recall: 0.2,
            attraction: 0.02,
            noise: self.random.pick(&[0.0, 0.02]),
            ..Coefficients::default()
        };
        let value = self
            .random
            .pick(&[0.0, 0.5, 0.01, 1.0, -1.0, f32::NAN, f32::INFINITY, 1e7]);
        let (part, range) = match self.random.below(5) {
            0 => (&mut coefficients.coupling, 0.0..=1.0),
            1 => (&mut coefficients.retention, 0.0..=1.0),
            2 => (&mut coefficients.imprint, 0.0..=10.0),
            3 => (&mut coefficients.saturation, 0.5..=1e6),
            _ => (&mut coefficients.attraction, 0.0..=0.02),
        };
        *part = value;
        let is_right = range.contains(&value);
        self.journal
            .push(format!("set_coefficients {coefficients:?}"));
        let before = *self.field.coefficients();
        if is_right {
            self.field.set_coefficients(coefficients).expect("in range");
        } else {
            is_invalid(self.field.set_coefficients(coefficients));
            assert_eq!(*self.field.coefficients(), before);
        }
    }

    fn save_or_set(&mut self) {
        let count = self.saved.len() as u64;
        if count == 0 || self.random.below(2) == 0 {
            self.journal.push(format!("state {count}"));
            self.saved.push(self.field.state().expect("readable"));
            return;
        }
        let place = self.random.below(count) as usize;
        self.journal.push(format!("set_state {place}"));
        self.field.set_state(&self.saved[place]).expect("its own");
        assert_eq!(self.field.state().expect("readable"), self.saved[place]);
    }

    fn set_wrong(&mut self) {
        let before = self.field.state().expect("readable");
        let mut wrong = before.clone();
        // So that a partly applied state would be detected.
        wrong.field.iter_mut().for_each(|value| *value = 0.25);
        let part = self.random.below(6);
        let array = [
            &mut wrong.field,
            &mut wrong.memory,
            &mut wrong.sites,
            &mut wrong.descriptor,
            &mut wrong.library,
            &mut wrong.traits,
        ]
        .into_iter()
        .nth(part as usize);
        let array = array.expect("six");
        if self.random.below(2) == 0 || array.is_empty() {
            array.push(0.0)
        } else {
            array.truncate(array.len() - 1)
        }
        self.journal
            .push(format!("set_state with array {part} of another length"));
        is_invalid(self.field.set_state(&wrong));
        assert_eq!(
            self.field.state().expect("readable"),
            before,
            "a state that is refused changes nothing"
        );
    }

    fn look(&mut self) {
        self.journal.push("work, stats, code, snapshot".to_owned());
        assert!(
            !self.field.work().launches.is_empty()
                && !self.field.code().is_empty()
                && !format!("{:?}", self.field).is_empty()
        );
        let state = self.field.state().expect("readable");
        let (shape, patterns) = (*self.field.shape(), self.field.options().patterns);
        assert_eq!(
            State::from_snapshot(&shape, patterns, &state.to_snapshot(&shape)).expect("its own"),
            state
        );
    }
}

impl api_fuzz::FuzzTarget for World {
    const CALLS: u64 = 20;
    const SHARE: u64 = 100;

    fn new(seed: u64) -> Self {
        Self::new(seed)
    }

    fn call(&mut self) {
        self.call();
    }

    fn journal(&self) -> &[String] {
        &self.journal
    }
}

#[test]
fn api_fuzz_of_fields() {
    api_fuzz::run_sequences::<World>();
}
