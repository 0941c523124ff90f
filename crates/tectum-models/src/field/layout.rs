//! Where numbers lie in the small buffers of a cycle. Device code gets the same table as constants.

use std::fmt::Write as _;

/// The most sensors of a field.
pub const MOST_SENSORS: usize = 256;
/// The most motors of a field.
pub const MOST_MOTORS: usize = 16;
/// The most content channels of a field.
pub const MOST_CONTENT: usize = 176;
/// Sums of a row: content, its size, its square, the first cell, the last, size of temporal, two idle.
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
    LIVE_SENSORS = 64;
    LIVE_WORDS = LIVE_SENSORS + MOST_SENSORS;
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
    CONTROL_STRATEGIC = CONTROL_PATTERN + MOST_CONTENT;
    CONTROL_WORDS = 512;
}

words! { MEMORY:
    // Kept from cycle to cycle: the statistics of the field that a cycle leaves behind, then what modulates the next.
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
    MEMORY_MOTORS = 16;
    MEMORY_HISTORY = 64;
    MEMORY_TRUST = MEMORY_HISTORY + 3 * MOST_SENSORS;
    MEMORY_WORDS = MEMORY_TRUST + MOST_SENSORS;
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
    REPORT_WORDS = 64;
}

/// The constants of device code.
pub fn wgsl() -> String {
    let mut text = String::new();
    let sizes = [("MOST_SENSORS", MOST_SENSORS), ("MOST_MOTORS", MOST_MOTORS), ("MOST_CONTENT", MOST_CONTENT), ("ROW_WORDS", ROW_WORDS)];
    for (name, value) in [LIVE, CONTROL, MEMORY, REPORT].into_iter().flatten().chain(&sizes) {
        let _ = writeln!(text, "const {name} = {value}u;");
    }
    text
}
