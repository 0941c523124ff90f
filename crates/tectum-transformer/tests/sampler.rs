//! Sampling of tokens: each setting against its specification, draws against their probabilities.

use tectum::ErrorKind;
use tectum_transformer::{Sampler, SamplingParams};

const SCORES: [f32; 6] = [1.0, 3.0, -1.0, 2.5, 3.0, 0.0];

fn sampler(sampling: SamplingParams) -> Sampler {
    Sampler::new(sampling, SCORES.len()).expect("fits")
}

/// How often each token is drawn, with the context cleared each time.
fn counts(sampling: SamplingParams, draws: usize) -> Vec<usize> {
    let (mut sampler, mut counts) = (sampler(sampling), vec![0; SCORES.len()]);
    (0..draws).for_each(|_| counts[sampler.sample(&SCORES).expect("chooses") as usize] += 1);
    counts
}

fn probabilities(temperature: f64, kept: &[usize]) -> Vec<f64> {
    let weight = |token: usize| {
        if kept.contains(&token) {
            (f64::from(SCORES[token]) / temperature).exp()
        } else {
            0.0
        }
    };
    let total: f64 = (0..SCORES.len()).map(weight).sum();
    (0..SCORES.len())
        .map(|token| weight(token) / total)
        .collect()
}

/// Four standard deviations of a binomial, and one for rounding.
#[test]
fn draws_have_the_probabilities_that_the_settings_leave() {
    const DRAWS: usize = 40_000;
    let warm = SamplingParams {
        temperature: 1.5,
        ..SamplingParams::default()
    };
    let cases = [
        (warm, 1.5, vec![0, 1, 2, 3, 4, 5]),
        (
            SamplingParams {
                temperature: 0.5,
                ..warm
            },
            0.5,
            vec![0, 1, 2, 3, 4, 5],
        ),
        // Of the equal scores of 1 and 4 the first counts as greater.
        (SamplingParams { top_k: 1, ..warm }, 1.5, vec![1]),
        (SamplingParams { top_k: 3, ..warm }, 1.5, vec![1, 4, 3]),
        (
            SamplingParams { top_k: 99, ..warm },
            1.5,
            vec![0, 1, 2, 3, 4, 5],
        ),
        // 0.31, 0.31 and 0.22 are the largest at 1.5, so two thirds need three of them.
        (
            SamplingParams {
                top_p: 0.67,
                ..warm
            },
            1.5,
            vec![1, 4, 3],
        ),
        (
            SamplingParams {
                top_p: 0.05,
                ..warm
            },
            1.5,
            vec![1],
        ),
        (
            SamplingParams {
                top_k: 2,
                top_p: 0.99,
                ..warm
            },
            1.5,
            vec![1, 4],
        ),
    ];
    for (sampling, temperature, kept) in cases {
        for (token, (count, p)) in counts(sampling, DRAWS)
            .into_iter()
            .zip(probabilities(temperature, &kept))
            .enumerate()
        {
            let (wanted, spread) = (DRAWS as f64 * p, (DRAWS as f64 * p * (1.0 - p)).sqrt());
            assert!(
                (count as f64 - wanted).abs() <= 4.0 * spread + 1.0,
                "{sampling:?}: token {token} came {count} times, not {wanted}"
            );
        }
    }
}

#[test]
fn a_seed_gives_the_same_tokens_and_another_gives_others() {
    let draw = |seed: u64| {
        let mut sampler = sampler(SamplingParams {
            temperature: 1.0,
            seed,
            ..SamplingParams::default()
        });
        (0..200)
            .map(|_| sampler.sample(&SCORES).expect("chooses"))
            .collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    assert_ne!(
        draw(7),
        draw(7 + (1 << 32)),
        "the upper half of the seed counts"
    );
    // The first draws under seed 7: a change of the generator or of the order of choices is a
    // change of what users get.
    assert_eq!(draw(7)[..12], [3, 3, 1, 1, 5, 1, 4, 4, 0, 1, 2, 3]);
}

#[test]
fn the_greatest_score_is_taken_and_repetition_costs() {
    let mut greedy = sampler(SamplingParams::default());
    assert_eq!(
        (0..3)
            .map(|_| greedy.sample(&SCORES).expect("chooses"))
            .collect::<Vec<_>>(),
        [1, 1, 1]
    );
    let mut penal = sampler(SamplingParams {
        repetition_penalty: 1.3,
        ..SamplingParams::default()
    });
    // 3 / 1.3 is 2.31: after each of the largest came once, 2.5 is next; then the first of those at
    // 2.31, repeatedly.
    assert_eq!(
        (0..5)
            .map(|_| penal.sample(&SCORES).expect("chooses"))
            .collect::<Vec<_>>(),
        [1, 4, 3, 1, 1]
    );
    let mut prompted = sampler(SamplingParams {
        repetition_penalty: 2.0,
        ..SamplingParams::default()
    });
    prompted.accept(&[0, 1, 3, 4]);
    assert_eq!(
        prompted
            .sample(&[-0.2, 0.1, -0.3, 0.1, 0.1, -0.25])
            .expect("chooses"),
        1,
        "0.1 halved is above −0.25"
    );
    assert_eq!(
        prompted
            .sample(&[-0.2, -9.0, -0.3, -9.0, -9.0, -0.35])
            .expect("chooses"),
        2,
        "−0.2 doubled is below −0.3"
    );
}

#[test]
fn settings_out_of_range_and_scores_that_are_none_are_refused() {
    let refused =
        |sampling: SamplingParams| Sampler::new(sampling, 4).expect_err("refused").to_string();
    let plain = SamplingParams::default();
    assert_eq!(
        refused(SamplingParams {
            temperature: -1.0,
            ..plain
        }),
        "temperature -1; 0 or more is needed"
    );
    assert_eq!(
        refused(SamplingParams {
            temperature: f32::NAN,
            ..plain
        }),
        "temperature NaN; 0 or more is needed"
    );
    assert_eq!(
        refused(SamplingParams {
            top_p: 0.0,
            ..plain
        }),
        "top-p 0; more than 0 and at most 1 is needed"
    );
    assert_eq!(
        refused(SamplingParams {
            top_p: 1.5,
            ..plain
        }),
        "top-p 1.5; more than 0 and at most 1 is needed"
    );
    assert_eq!(
        refused(SamplingParams {
            repetition_penalty: 0.0,
            ..plain
        }),
        "repetition penalty 0; more than 0 is needed"
    );
    for sampling in [
        plain,
        SamplingParams {
            temperature: 1.0,
            top_p: 0.5,
            top_k: 2,
            ..plain
        },
    ] {
        let mut sampler = Sampler::new(sampling, 3).expect("fits");
        let mut fault = |scores: [f32; 3]| sampler.sample(&scores).expect_err("refused");
        assert_eq!(
            fault([0.0, f32::NAN, 1.0]).to_string(),
            "token 1 has the score NaN"
        );
        assert_eq!(
            fault([f32::INFINITY, 0.0, 1.0]).to_string(),
            "token 0 has the score inf"
        );
        let none = fault([f32::NEG_INFINITY; 3]);
        assert_eq!(
            (none.kind(), none.to_string()),
            (
                ErrorKind::Mismatch,
                "no token has a score above −∞".to_owned()
            )
        );
        assert_eq!(
            sampler
                .sample(&[f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY])
                .expect("one"),
            1
        );
    }
}

/// Probabilities of 0.5, 0.3 and 0.2, and shares a hundredth to either side of the first two's sum.
#[test]
fn a_share_keeps_the_token_that_passes_it_and_no_other() {
    let scores = [0.5f32, 0.3, 0.2].map(f32::ln);
    for (top_p, kept) in [(0.49, 1), (0.51, 2), (0.79, 2), (0.81, 3)] {
        let mut sampler = Sampler::new(
            SamplingParams {
                temperature: 1.0,
                top_p,
                ..SamplingParams::default()
            },
            scores.len(),
        )
        .expect("fits");
        let drawn: std::collections::BTreeSet<u32> = (0..400)
            .map(|_| sampler.sample(&scores).expect("chooses"))
            .collect();
        assert_eq!(drawn, (0..kept).collect(), "{top_p}");
    }
}
