//! Section V-D: cleanups, and lookups before and after.

use warpset::lsm::gpu::LookupMethod;

use super::{Bench, Scale, spread};
use bench_frame::table::rate;
use bench_record::Record;

impl Bench<'_> {
    /// Measures Section V-D.
    pub(super) fn cleanups(&mut self, scale: Scale) -> anyhow::Result<()> {
        for &(log2_batch, levels, stale) in scale.cleaned {
            let n = ((1usize << levels) - 1) << log2_batch;
            let live = n - n * stale as usize / 100;
            // The last batches overwrite the first elements, with the same values.
            let keys = self.keys(n, |i| (i % live) as u32)?;
            let queries = if self.device.is_emulator() { 64 } else { 1 << 25 };
            let asked = self.keys(queries, |i| spread(i, live))?;
            let mut values = self.device.alloc_zeroed::<u32>(queries)?;
            let mut found = self.device.alloc_zeroed::<u64>(queries.div_ceil(64))?;
            let mut lsm = self.empty(log2_batch)?;
            self.fill(&mut lsm, &keys, n, log2_batch)?;
            lsm.snapshot().live_elements()?; // loads the kernels
            let mut right = lsm.level_lens().len() == levels as usize;
            let row = |operation: &str, n: usize, seconds: f64| {
                let row = Record::new("lsm", operation, n).by("lsm", false).param("study", "paper cleanup");
                let row = row.param("batch", 1u64 << log2_batch).param("levels", levels).param("stale_percent", stale);
                row.time(seconds)
            };
            let mut rows = Vec::new();
            for after in [false, true] {
                if after {
                    let begin = std::time::Instant::now();
                    lsm.cleanup()?;
                    rows.push(row("cleanup", n, begin.elapsed().as_secs_f64()));
                    right &= lsm.len()? == live as u64 && lsm.resident_len() == live as u64;
                }
                for (method, name) in [(LookupMethod::Halving, "by halving"), (LookupMethod::Auto, "prepared")] {
                    if method == LookupMethod::Auto {
                        lsm.prepare()?;
                    }
                    let mut seconds = 0.0;
                    for _ in 0..2 {
                        seconds = self.seconds(|| {
                            let (values, found) = (values.as_mut_slice(), found.as_mut_slice());
                            // SAFETY: all memory lives until the event has been waited for.
                            unsafe { lsm.get_async_with(&self.stream, asked.as_slice(), values, found, method)? };
                            Ok(())
                        })?;
                    }
                    right &= values.to_vec()? == asked.to_vec()?;
                    let when = if after { "after" } else { "before" };
                    rows.push(row(&format!("get {when} cleanup, {name}"), queries, seconds));
                }
            }
            rows.into_iter().for_each(|row| self.add(row, right));
        }
        self.session.show(
            "paper cleanup",
            "Section V-D: cleanups, and 32 M lookups before and after; per second",
            |_| true,
            |row| {
                let number = |name| row.number(name).unwrap_or_default();
                format!(
                    "b = 2^{}, {} levels, {} % stale",
                    number("batch").log2(),
                    number("levels"),
                    number("stale_percent")
                )
            },
            |row| row.items_per_second.map_or_else(String::new, rate),
        );
        Ok(())
    }
}
