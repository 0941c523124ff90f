//! Step 0: the library's recall and storage.

use super::*;

/// The traits of a row.
struct Row {
    length: f64,
    age: f64,
    used: f64,
    reward: f64,
    cosine: f64,
}

impl Row {
    fn score(&self) -> f64 {
        self.cosine * (-self.age / 500.0).exp()
    }

    /// −1 for a free place.
    fn value(&self) -> f64 {
        if self.length > 0.0 {
            (0.5 + 0.5 * self.reward) * ((-self.age / 500.0).exp() + self.used)
        } else {
            -1.0
        }
    }
}

impl Cycle<'_> {
    /// The library's choices in this cycle.
    pub fn recall(&self, state: &State) -> Recall {
        let (present, rows, attractors) = self.rows(state);
        let length = length(&present);
        let mut kept: Vec<usize> = (0..rows.len())
            .filter(|row| rows[*row].length > 0.0)
            .collect();
        let count = kept.len();
        // The sorts are stable: among equals the lowest row comes first.
        kept.sort_by(|a, b| rows[*b].cosine.total_cmp(&rows[*a].cosine));
        let nearest = kept.first().copied();
        kept.sort_unstable();
        kept.sort_by(|a, b| rows[*b].score().total_cmp(&rows[*a].score()));
        kept.truncate(TOP);
        let is_new = !rows.is_empty()
            && length > 1e-6
            && nearest.is_none_or(|row| rows[row].cosine < f64::from(self.coefficients.familiar));
        let stored = least(rows.iter().map(Row::value)).filter(|_| is_new);
        let is_first = stored.is_some_and(|row| rows[row].length <= 0.0);
        let attracts = !rows.is_empty() && length > 1e-6 && self.reward.abs() > 0.1;
        // Strengths are numbers of the state: equal ones are equal on every device.
        let strengths = attractors
            .iter()
            .map(|row| if row.length > 0.0 { row.age } else { -1.0 });
        Recall {
            nearest,
            top: kept,
            stored,
            attractor: least(strengths).filter(|_| attracts),
            kept: count + usize::from(is_first),
        }
    }

    /// The difference in scores, cosines and values with which these choices would be right; 0 if
    /// they are right, infinite if no difference suffices.
    pub fn recall_margin(&self, state: &State, device_recall: &Recall) -> f64 {
        let own = self.recall(state);
        let (_, rows, _) = self.rows(state);
        let is_possible = own.nearest.is_some() == device_recall.nearest.is_some()
            && own.top.len() == device_recall.top.len()
            && own.attractor == device_recall.attractor;
        if !is_possible
            || device_recall
                .top
                .iter()
                .chain(&device_recall.nearest)
                .any(|row| rows[*row].length <= 0.0)
        {
            return f64::INFINITY;
        }
        let greatest = |rows: &mut dyn Iterator<Item = f64>| rows.fold(f64::NEG_INFINITY, f64::max);
        let mut short: f64 = 0.0;
        if let Some(row) = device_recall.nearest {
            short = short.max(
                greatest(
                    &mut rows
                        .iter()
                        .filter(|row| row.length > 0.0)
                        .map(|row| row.cosine),
                ) - rows[row].cosine,
            );
        }
        for (rank, row) in device_recall.top.iter().enumerate() {
            let left = (0..rows.len()).filter(|other| {
                rows[*other].length > 0.0 && !device_recall.top[..rank].contains(other)
            });
            short = short
                .max(greatest(&mut left.map(|other| rows[other].score())) - rows[*row].score());
        }
        if own.stored.is_some() != device_recall.stored.is_some() {
            let cosine = own.nearest.map_or(f64::INFINITY, |row| rows[row].cosine);
            short = short.max((cosine - f64::from(self.coefficients.familiar)).abs());
        }
        if let Some(row) = device_recall.stored {
            short =
                short.max(rows[row].value() + greatest(&mut rows.iter().map(|row| -row.value())));
        }
        short
    }

    /// The library after these choices, and T by octant; other results are written to `memory`.
    pub(super) fn update_library(
        &self,
        state: &State,
        recall: &Recall,
        memory: &mut [f64],
    ) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let width = OCTANTS * self.shape.content();
        let mut library: Vec<f64> = state.library.iter().map(|v| f64::from(*v)).collect();
        let mut traits: Vec<f64> = state.traits.iter().map(|v| f64::from(*v)).collect();
        let mut pull = vec![0.0; width];
        let (present, rows, attractors) = self.rows(state);
        if rows.is_empty() {
            return (library, traits, pull);
        }
        let reward = f64::from(self.reward).clamp(-1.0, 1.0);
        let mut rate = 0.0;
        let mut add = |row: usize, weight: f64| {
            rate += weight;
            pull.iter_mut()
                .zip(&library[row * width..])
                .for_each(|(sum, v)| *sum += weight * v);
        };

        // Recalled patterns and attractors.
        let scores: Vec<f64> = recall.top.iter().map(|row| rows[*row].score()).collect();
        let sum: f64 = scores.iter().map(|score| (5.0 * score).exp()).sum();
        let weights: Vec<f64> = scores
            .iter()
            .map(|score| (5.0 * score).exp() / sum)
            .collect();
        let strength = f64::from(self.coefficients.recall)
            * scores.first().map_or(0.0, |score| score.max(0.0));
        recall
            .top
            .iter()
            .zip(&weights)
            .for_each(|(row, weight)| add(*row, strength * weight));
        for (place, row) in attractors
            .iter()
            .enumerate()
            .filter(|(_, row)| row.length > 0.0)
        {
            add(
                rows.len() + place,
                f64::from(self.coefficients.attraction) * row.age * row.reward * (1.0 + row.cosine)
                    / 2.0,
            );
        }
        self.lead(&library, &attractors, memory);

        // Traits.
        for (row, own) in traits.chunks_exact_mut(TRAIT_WORDS).enumerate() {
            if row >= rows.len() {
                own[1] = if 0.95 * own[1] < 1e-6 {
                    0.0
                } else {
                    0.95 * own[1]
                };
            } else if own[0] > 0.0 {
                let weight = recall
                    .top
                    .iter()
                    .position(|other| *other == row)
                    .map_or(0.0, |rank| weights[rank]);
                let is_met = recall.stored.is_none() && recall.nearest == Some(row);
                own[1] = if is_met { 0.0 } else { (own[1] + 1.0).min(1e6) };
                own[2] = 0.999 * own[2] + 0.001 * weight;
                own[3] += 0.1 * weight * (reward - own[3]);
            }
        }
        let mut take = |row: usize, own: [f64; TRAIT_WORDS]| {
            library[row * width..][..width].copy_from_slice(&present);
            traits[row * TRAIT_WORDS..][..TRAIT_WORDS].copy_from_slice(&own);
        };
        recall
            .stored
            .into_iter()
            .for_each(|row| take(row, [length(&present), 0.0, 0.0, reward]));
        recall.attractor.into_iter().for_each(|place| {
            take(
                rows.len() + place,
                [length(&present), reward.abs(), 0.0, reward.signum()],
            )
        });

        let number = |row: Option<usize>| row.map_or(-1.0, |row| row as f64);
        for rank in 0..TOP {
            memory[MEMORY_TOP + rank] = number(recall.top.get(rank).copied());
            memory[MEMORY_SCORES + rank] = scores.get(rank).copied().unwrap_or(0.0);
        }
        memory[MEMORY_SIMILARITY] = recall.nearest.map_or(0.0, |row| rows[row].cosine.max(0.0));
        memory[MEMORY_PULL] = rate;
        memory[MEMORY_NEAREST] = number(recall.nearest);
        memory[MEMORY_STORED] = number(recall.stored);
        memory[MEMORY_ATTRACTOR] = number(recall.attractor);
        memory[MEMORY_KEPT] = recall.kept as f64;
        (library, traits, pull)
    }

    /// The strategic pattern, its weight and drive.
    fn lead(&self, library: &[f64], attractors: &[Row], memory: &mut [f64]) {
        let (content, temporal) = (self.shape.content(), self.shape.temporal());
        let patterns = self.options.patterns;
        let good = attractors.iter().map(|row| {
            if row.length > 0.0 && row.reward > 0.0 {
                -row.age
            } else {
                0.0
            }
        });
        let leading = least(good).filter(|place| {
            attractors[*place].length > 0.0
                && attractors[*place].reward > 0.0
                && attractors[*place].age > 0.0
        });
        memory[MEMORY_STRATEGIC..][..temporal].fill(0.0);
        memory[MEMORY_STRATEGIC_WEIGHT] = 0.0;
        memory[MEMORY_STRATEGIC_DRIVE] = 0.0;
        let Some(place) = leading else { return };
        let pattern = &library[(patterns + place) * OCTANTS * content..][..OCTANTS * content];
        for c in 0..temporal {
            let parts: Vec<f64> = pattern
                .iter()
                .enumerate()
                .filter(|(i, _)| i % content % temporal == c)
                .map(|(_, v)| *v)
                .collect();
            memory[MEMORY_STRATEGIC + c] = mean_of(parts.iter()).unwrap_or(0.0).tanh();
        }
        let mean = mean_of(memory[MEMORY_STRATEGIC..][..temporal].iter()).unwrap_or(0.0);
        memory[MEMORY_STRATEGIC_WEIGHT] =
            f64::from(self.coefficients.strategy) * attractors[place].age;
        memory[MEMORY_STRATEGIC_DRIVE] = attractors[place].age * mean.tanh();
    }

    /// The current pattern, the patterns and the attractors; an attractor has its strength in place
    /// of a pattern's age, its sign in place of the reward.
    fn rows(&self, state: &State) -> (Vec<f64>, Vec<Row>, Vec<Row>) {
        let content = self.shape.content();
        let mean = |i: usize| {
            let inside = |region: &usize| {
                [32, 8, 2]
                    .into_iter()
                    .fold(0, |octant, part| 2 * octant + region / part % 2)
                    == i / content
            };
            (0..REGIONS)
                .filter(inside)
                .map(|region| f64::from(state.descriptor[region * content + i % content]))
                .sum::<f64>()
                / 8.0
        };
        let present: Vec<f64> = (0..OCTANTS * content).map(mean).collect();
        let own = length(&present);
        let row = |(pattern, traits): (&[f32], &[f32])| {
            let product: f64 = pattern
                .iter()
                .zip(&present)
                .map(|(v, p)| f64::from(*v) * p)
                .sum();
            let [length, age, used, reward] = [0, 1, 2, 3].map(|i| f64::from(traits[i]));
            Row {
                length,
                age,
                used,
                reward,
                cosine: product / (length * own + 1e-6),
            }
        };
        let mut rows: Vec<Row> = state
            .library
            .chunks_exact(OCTANTS * content)
            .zip(state.traits.chunks_exact(TRAIT_WORDS))
            .map(row)
            .collect();
        let attractors = rows.split_off(self.options.patterns);
        (present, rows, attractors)
    }
}

fn length(pattern: &[f64]) -> f64 {
    pattern.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// The index of the minimum; among equals the first.
fn least(numbers: impl Iterator<Item = f64>) -> Option<usize> {
    numbers
        .enumerate()
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(at, _)| at)
}
