//! Any control flow as one loop over basic blocks: `pc` says which comes next.
//!
//! With barriers, lanes run until they end or reach one, then the whole block synchronises: the
//! check ensures that if one lane waits, all do, so the first lane's `pc` says whether the block
//! continues.

use super::statement::Statements;
use super::structured::condition;
use super::{Bounds, Unsupported};
use crate::Instruction;

/// The `pc` of a lane that has ended.
const END: &str = "0xffffffffu";
/// Added to the `pc` of a lane that waits at a barrier.
const WAITS: u32 = 0x8000_0000;
/// Maximum depth of calls.
const MAX_CALL_DEPTH: u32 = 256;

/// The body of `run`.
pub fn body(statements: &mut Statements<'_>, has_barriers: bool) -> Result<String, Unsupported> {
    let blocks = Blocks::of(statements.program.instructions());
    let calls = statements
        .program
        .instructions()
        .iter()
        .any(|instruction| matches!(instruction, Instruction::Call { .. }));
    let mut text = String::from("    var pc = 0u;\n");
    if calls {
        text.push_str(&format!(
            "    var returns = array<u32, {MAX_CALL_DEPTH}>();\n    var depth = 0u;\n"
        ));
    }
    let (indent, waits) = if has_barriers {
        (2, "    loop {\n")
    } else {
        (1, "")
    };
    let count = blocks.firsts.len();
    let turns = statements.program.has_loops();
    let within = if turns {
        text.push_str("    var at = 0u;\n");
        " && turns <= params.max_turns"
    } else {
        ""
    };
    text.push_str(waits);
    super::indented(
        &mut text,
        indent,
        &format!("while pc < {count}u{within} {{"),
    );
    super::indented(&mut text, indent + 1, "switch pc {");
    for number in 0..count {
        super::indented(&mut text, indent + 2, &format!("case {number}u: {{"));
        block(statements, &blocks, number, &mut text, indent + 3)?;
        super::indented(&mut text, indent + 2, "}");
    }
    super::indented(&mut text, indent + 2, "default: {}");
    super::indented(&mut text, indent + 1, "}");
    super::indented(&mut text, indent, "}");
    let stopped = format!("if pc < {count}u {{ stopped(turns, at); pc = {END}; }}");
    if turns {
        super::indented(&mut text, indent, &stopped);
    }
    if has_barriers {
        let meet = [
            "if local == 0u { first_pc = pc; }",
            "storageBarrier();",
            &format!("if workgroupUniformLoad(&first_pc) == {END} {{ break; }}"),
            &format!("if pc != {END} {{ pc -= {WAITS:#x}u; }}"),
        ];
        meet.iter()
            .for_each(|line| super::indented(&mut text, 2, line));
        text.push_str("    }\n");
        if turns {
            super::indented(&mut text, 1, &stopped);
        }
    }
    Ok(text)
}

/// Basic blocks of the whole program, called code included.
struct Blocks {
    /// The first instruction of each.
    firsts: Vec<usize>,
    end: usize,
}

impl Blocks {
    fn of(code: &[Instruction]) -> Blocks {
        let mut leads = vec![false; code.len() + 1];
        leads[0] = true;
        for (index, instruction) in code.iter().enumerate() {
            if let Some(target) = instruction.target() {
                leads[target.index()] = true;
            }
            if instruction.target().is_some()
                || !instruction.falls_through()
                || matches!(instruction, Instruction::Barrier { .. })
            {
                leads[index + 1] = true;
            }
        }
        Blocks {
            firsts: (0..code.len()).filter(|index| leads[*index]).collect(),
            end: code.len(),
        }
    }

    /// The `pc` of an instruction that begins a block, or of the end.
    fn pc(&self, instruction: usize) -> String {
        match self.firsts.binary_search(&instruction) {
            Ok(number) => format!("{number}u"),
            Err(_) => END.to_owned(),
        }
    }

    fn range(&self, number: usize) -> std::ops::Range<usize> {
        self.firsts[number]..self.firsts.get(number + 1).copied().unwrap_or(self.end)
    }
}

fn block(
    statements: &mut Statements<'_>,
    blocks: &Blocks,
    number: usize,
    text: &mut String,
    indent: u32,
) -> Result<(), Unsupported> {
    let range = blocks.range(number);
    let next = blocks.pc(range.end);
    for index in range {
        let instruction = statements.program.instructions()[index];
        if let Some(lines) = jump(instruction, blocks, &next) {
            let turned = turn(instruction, index);
            turned
                .iter()
                .chain(&lines)
                .for_each(|line| super::indented(text, indent, line));
            return Ok(());
        }
        let statement = statements.of(index)?;
        statement
            .lines
            .iter()
            .for_each(|line| super::indented(text, indent, line));
        if statement.may_fault && statements.bounds == Bounds::Checked {
            super::indented(
                text,
                indent,
                &format!("if faulted {{ pc = {END}; break; }}"),
            );
        }
    }
    super::indented(text, indent, &format!("pc = {next};"));
    Ok(())
}

/// The statement that counts a jump back.
fn turn(instruction: Instruction, index: usize) -> Option<String> {
    instruction.target().filter(|_| instruction.turns(index))?;
    let taken = match instruction {
        Instruction::Branch {
            guard: Some(guard), ..
        } => format!("u32({})", condition(guard)),
        Instruction::Loop { count, .. } => format!("min(r{}, 1u)", count.0),
        _ => "1u".to_owned(),
    };
    Some(format!("turns += {taken}; at = {index}u;"))
}

/// The statements of an instruction that ends a block.
fn jump(instruction: Instruction, blocks: &Blocks, next: &str) -> Option<Vec<String>> {
    Some(match instruction {
        Instruction::Branch {
            target,
            guard: None,
        } => vec![format!("pc = {};", blocks.pc(target.index()))],
        Instruction::Branch {
            target,
            guard: Some(guard),
        } => {
            vec![format!(
                "pc = select({next}, {}, {});",
                blocks.pc(target.index()),
                condition(guard)
            )]
        }
        Instruction::Loop { count, body } => {
            let count = format!("r{}", count.0);
            vec![
                format!(
                    "pc = select({next}, {}, {count} > 0u);",
                    blocks.pc(body.index())
                ),
                format!("{count} -= min({count}, 1u);"),
            ]
        }
        Instruction::Call { target } => {
            vec![
                format!("returns[depth] = {next};"),
                "depth += 1u;".to_owned(),
                format!("pc = {};", blocks.pc(target.index())),
            ]
        }
        Instruction::Return => vec!["depth -= 1u;".to_owned(), "pc = returns[depth];".to_owned()],
        Instruction::Exit => vec![format!("pc = {END};")],
        // No instruction follows the barrier: waiting at it is the end.
        Instruction::Barrier { .. } if next == END => vec![format!("pc = {END};")],
        Instruction::Barrier { .. } => vec![format!("pc = {WAITS:#x}u + {next};")],
        _ => return None,
    })
}
