//! Split of a batch into the texts of the outputs.

use std::io::Write;

use super::batch::Batch;
use super::decide::Decision;
use super::sink::Sink;

/// Number of outputs: reads that match, their mates, reads that do not match, their mates, counts.
pub(super) const OUTPUTS: usize = 5;
pub(super) const MATCHED: usize = 0;
pub(super) const UNMATCHED: usize = 2;
pub(super) const COUNTS: usize = 4;

/// Returns the text for each output.
///
/// A whole text that goes to one output is moved if it `may_move`, else copied. A move gives the batch other memory for
/// its next text, which is not in the cache of this core.
pub(super) fn written(
    batch: &mut Batch,
    decisions: &[Decision],
    (sinks, may_move): (&[Option<Sink>; OUTPUTS], bool),
) -> [Vec<u8>; OUTPUTS] {
    let mut texts: [Vec<u8>; OUTPUTS] = Default::default();
    if let Some(sink) = &sinks[COUNTS] {
        let text = &mut texts[COUNTS];
        *text = sink.spare();
        text.clear();
        for (unit, decision) in decisions.iter().enumerate() {
            let Decision { matches, hits, total, fields } = decision;
            text.extend_from_slice(batch.name(unit * batch.mates()));
            // Writing to memory does not fail.
            let _ = match fields.is_empty() {
                true => writeln!(text, "\t{hits}\t{total}\t{}", u8::from(*matches)),
                false => writeln!(text, "\t{fields}"),
            };
        }
    }
    for (first, mate) in [(MATCHED, false), (MATCHED, true), (UNMATCHED, false), (UNMATCHED, true)] {
        let which = first + usize::from(mate);
        let Some(sink) = &sinks[which] else { continue };
        // Mates are written together unless they have a file of their own.
        let of_unit: &[usize] = match (batch.mates(), mate, sinks[first + 1].is_some()) {
            (1, false, _) | (2, false, true) => &[0],
            (2, false, false) => &[0, 1],
            (2, true, _) => &[1],
            _ => &[],
        };
        let text = &mut texts[which];
        *text = sink.spare();
        let chosen = |decision: &Decision| decision.matches == (first == MATCHED);
        if may_move && of_unit.len() == batch.mates() && batch.is_in_order() && decisions.iter().all(chosen) {
            // No other output takes any of it.
            *text = batch.replace_text(std::mem::take(text));
            continue;
        }
        text.clear();
        // Adjacent records are copied together.
        let mut run = (0, 0);
        for (unit, _) in decisions.iter().enumerate().filter(|(_, decision)| chosen(decision)) {
            for mate in of_unit {
                let (begin, end) = batch.bytes(unit * batch.mates() + mate);
                if begin == run.1 {
                    run.1 = end;
                } else {
                    text.extend_from_slice(&batch.text()[run.0..run.1]);
                    run = (begin, end);
                }
            }
        }
        text.extend_from_slice(&batch.text()[run.0..run.1]);
        if text.last().is_some_and(|&last| last != b'\n') {
            text.push(b'\n');
        }
    }
    texts
}
