//! Builds small modules around a few instructions and runs them.

use ptx_interpreter::{Approximation, Error, Launch, Memory, Program, Schedule, Stats};

/// Wraps a body into an entry `k` for sm_90 with registers of every kind.
pub fn module(params: &str, body: &str) -> String {
    format!(
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k({params})\n{{\n\
         .reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<20>; .reg .b64 %d<20>;\n{body}\nret;\n}}\n"
    )
}

/// Runs one thread of a body with one parameter `out` and returns the register `result`.
pub fn value(body: &str, result: &str) -> Result<u64, Error> {
    value_under(body, result, Approximation::Exact)
}

/// Like [`value`], with the given mode of the approximate instructions.
pub fn value_under(body: &str, result: &str, approximation: Approximation) -> Result<u64, Error> {
    let store = match &result[..2] {
        "%p" => format!("selp.b64 %d18, 1, 0, {result}; st.global.b64 [%d19], %d18;"),
        "%h" => format!("st.global.b16 [%d19], {result};"),
        "%r" => format!("st.global.b32 [%d19], {result};"),
        _ => format!("st.global.b64 [%d19], {result};"),
    };
    let text = module(
        ".param .u64 out",
        &format!("ld.param.u64 %d19, [out];\n{body}\n{store}"),
    );
    let program = Program::parse(&text)?;
    let mut memory = Memory::new();
    let out = memory.allocate(&[0; 8]);
    let params = [out];
    let launch = Launch {
        approximation,
        ..Launch::new("k", &params)
    };
    program.run(&mut memory, &launch)?;
    let bytes = memory.read(out, 8)?;
    Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}

/// One run of many threads over one buffer of 32-bit words.
pub struct Run {
    pub block: [u32; 3],
    pub grid: [u32; 3],
    pub schedule: Schedule,
    pub race_check: bool,
    pub limit: u64,
    pub dynamic_shared_bytes: u32,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            block: [32, 1, 1],
            grid: [1; 3],
            schedule: Schedule::Forward,
            race_check: true,
            limit: 1 << 20,
            dynamic_shared_bytes: 0,
        }
    }
}

impl Run {
    pub fn threads(count: u32) -> Run {
        Run {
            block: [count, 1, 1],
            ..Run::default()
        }
    }

    /// Runs a body that finds the address of `words` in `%d0`, the thread in `%r0` and the address
    /// of its word in `%d1`.
    pub fn words(&self, body: &str, words: &[u32]) -> Result<(Vec<u32>, Stats), Error> {
        let body = format!(
            "ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1;\n{body}"
        );
        self.module(&module(".param .u64 out", &body), words)
    }

    /// Runs a whole module whose entry `k` has one parameter, the address of `words`.
    pub fn module(&self, text: &str, words: &[u32]) -> Result<(Vec<u32>, Stats), Error> {
        let program = Program::parse(text)?;
        let mut memory = Memory::new();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let address = memory.allocate(&bytes);
        let params = [address];
        let launch = Launch {
            grid: self.grid,
            block: self.block,
            schedule: self.schedule,
            race_check: self.race_check,
            instruction_limit: self.limit,
            dynamic_shared_bytes: self.dynamic_shared_bytes,
            ..Launch::new("k", &params)
        };
        let stats = program.run(&mut memory, &launch)?;
        let bytes = memory.read(address, bytes.len())?;
        let words = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        Ok((words, stats))
    }
}

/// Checks a table of bodies that leave a value in a register.
pub fn check(table: &[(&str, &str, u64)]) {
    for (body, register, expected) in table {
        match value(body, register) {
            Ok(found) => assert_eq!(
                found, *expected,
                "{body}: {register} is {found:#x}, expected {expected:#x}"
            ),
            Err(error) => panic!("{body}: {error}"),
        }
    }
}
