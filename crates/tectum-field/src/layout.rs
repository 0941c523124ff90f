//! The layout of the small buffers of a cycle. Device code gets the same table as constants.

use std::fmt::Write as _;

/// Maximum sensors of a field.
pub const MAX_SENSORS: usize = 256;
/// Maximum motors of a field.
pub const MAX_MOTORS: usize = 16;
/// Maximum content channels of a field.
pub const MAX_CONTENT: usize = 176;
/// Maximum patterns of a library.
pub const MAX_PATTERNS: usize = 4096;
/// Attractors of a library, stored after its patterns.
pub const ATTRACTORS: usize = 20;
/// Patterns that are recalled together.
pub const TOP: usize = 8;
/// Equal parts of the field whose mean content is a pattern.
pub const OCTANTS: usize = 8;
/// Traits of a stored pattern: its length, 0 in a free place; its age in cycles, use and reward, or
/// for an attractor strength, unused and sign.
pub const TRAIT_WORDS: usize = 4;
/// Sums of a row: content, its size, its square, the first cell, the last, size of temporal, two
/// unused.
pub const ROW_WORDS: usize = 8;

macro_rules! words {
    ($table:ident: $($(#[$doc:meta])* $name:ident = $at:expr;)*) => {
        $($(#[$doc])* pub const $name: usize = $at;)*
        const $table: &[(&str, usize)] = &[$((stringify!($name), $at)),*];
    };
}

words! { LIVE:
    // Written by the host before each cycle; floats as their bits.
    LIVE_KEY = 0;
    LIVE_AGE = 2;
    LIVE_RETENTION = 3;
    LIVE_DECAY_DEPTH = 4;
    LIVE_DIFFUSION = 5;
    LIVE_DIFFUSION_DEPTH = 8;
    LIVE_COUPLING = 11;
    LIVE_NOISE = 12;
    LIVE_WAVE = 13;
    LIVE_ERROR_DRIVE = 14;
    LIVE_IMPRINT = 15;
    LIVE_DYNAMICS_RATE = 16;
    LIVE_ECHO = 17;
    LIVE_EXPLORATION = 18;
    LIVE_SATURATION = 19;
    LIVE_REWARD = 20;
    LIVE_MOMENTUM = 21;
    LIVE_WANDER = 22;
    LIVE_PHASES = 24;
    LIVE_RECALL = 32;
    LIVE_FAMILIAR = 33;
    LIVE_ATTRACTION = 34;
    LIVE_STRATEGY = 35;
    LIVE_SENSORS = 64;
    LIVE_WORDS = LIVE_SENSORS + MAX_SENSORS;
}

words! { CONTROL:
    // Written by sense and place, read by the rest of the cycle.
    CONTROL_DRIVE = 0;
    CONTROL_EXPLORE = 1;
    CONTROL_INTENSITY = 2;
    CONTROL_ERROR_EVERYWHERE = 3;
    CONTROL_STEP = 4;
    CONTROL_RETENTION = 5;
    CONTROL_PLACE = 6;
    CONTROL_PLACE_KIND = 9;
    CONTROL_PULL = 10;
    CONTROL_ECHO_FORWARD = 11;
    CONTROL_ECHO_TURN = 12;
    CONTROL_ECHO_MEAN = 13;
    CONTROL_STRATEGIC_WEIGHT = 14;
    CONTROL_STRATEGIC_DRIVE = 15;
    CONTROL_NOVELTY = 16;
    CONTROL_ERROR = 17;
    CONTROL_SCORE = 18;
    CONTROL_NEAR = 64;
    CONTROL_FAR = 128;
    CONTROL_REGION_ERROR = 192;
    CONTROL_PATTERN = 256;
    CONTROL_STRATEGIC = CONTROL_PATTERN + MAX_CONTENT;
    CONTROL_WORDS = 512;
}

words! { MEMORY:
    // State between cycles: the statistics of the field after a cycle, then the modulation of the
    // next.
    MEMORY_MEAN = 0;
    MEMORY_SIZE = 1;
    MEMORY_VARIANCE = 2;
    MEMORY_INFORMATION = 3;
    MEMORY_CONFIDENCE = 4;
    MEMORY_ERROR = 5;
    MEMORY_PLATEAU = 6;
    MEMORY_IDLE = 7;
    MEMORY_SIMILARITY = 8;
    MEMORY_TEMPORAL = 9;
    MEMORY_PULL = 10;
    MEMORY_STRATEGIC_WEIGHT = 11;
    MEMORY_STRATEGIC_DRIVE = 12;
    MEMORY_MOTORS = 16;
    MEMORY_TOP = 32;
    MEMORY_SCORES = MEMORY_TOP + TOP;
    MEMORY_NEAREST = 48;
    MEMORY_STORED = 49;
    MEMORY_ATTRACTOR = 50;
    MEMORY_KEPT = 51;
    MEMORY_HISTORY = 64;
    MEMORY_TRUST = MEMORY_HISTORY + 3 * MAX_SENSORS;
    MEMORY_STRATEGIC = MEMORY_TRUST + MAX_SENSORS;
    MEMORY_WORDS = MEMORY_STRATEGIC + 64;
}

words! { REPORT:
    // Read by the host after each cycle.
    REPORT_MOTORS = 0;
    REPORT_DRIVE = 16;
    REPORT_EXPLORE = 17;
    REPORT_INTENSITY = 18;
    REPORT_PLACE = 19;
    REPORT_PLACE_KIND = 22;
    REPORT_NOVELTY = 23;
    REPORT_ERROR = 24;
    REPORT_INFORMATION = 25;
    REPORT_CONFIDENCE = 26;
    REPORT_MEAN = 27;
    REPORT_SIZE = 28;
    REPORT_VARIANCE = 29;
    REPORT_GRADIENT = 30;
    REPORT_TOP = 33;
    REPORT_NEAREST = REPORT_TOP + TOP;
    REPORT_STORED = REPORT_NEAREST + 1;
    REPORT_ATTRACTOR = REPORT_NEAREST + 2;
    REPORT_KEPT = REPORT_NEAREST + 3;
    REPORT_WORDS = 64;
}

/// The constants of device code.
pub fn wgsl() -> String {
    let mut text = String::new();
    let sizes = [
        ("MAX_SENSORS", MAX_SENSORS),
        ("MAX_MOTORS", MAX_MOTORS),
        ("MAX_CONTENT", MAX_CONTENT),
        ("ROW_WORDS", ROW_WORDS),
        ("TRAIT_WORDS", TRAIT_WORDS),
        ("ATTRACTORS", ATTRACTORS),
        ("TOP", TOP),
        ("OCTANTS", OCTANTS),
    ];
    for (name, value) in [LIVE, CONTROL, MEMORY, REPORT]
        .into_iter()
        .flatten()
        .chain(&sizes)
    {
        let _ = writeln!(text, "const {name} = {value}u;");
    }
    text
}
