//! Files of labels: a header, numbers of k-mers and names of genomes; then the saved function, with its own header and
//! checksum. Byte for byte in `docs/formats.md`.

use std::io::{Read, Write};
use std::path::Path;

use warpset_base::file::{self, FIELDS, FileError, FileKind, HEADER_BYTES, Header, HeaderBytes};
use warpset_fuse::StaticFunction;

use super::{Labels, MOST_GENOMES};
use crate::index::{open, write};
use crate::recognise::{head_of, recognise};
use crate::wide::Wide;
use crate::{Error, K};

impl Labels {
    /// Whether a file begins as labels do; [`Labels::load`] reports the fault of a damaged one.
    pub fn is_in(path: impl AsRef<Path>) -> bool {
        head_of(path.as_ref()).is_ok_and(|head| recognise(&head).is_some_and(|(what, _)| what == "labels"))
    }

    /// Reads and checks a file of [`Labels::save`], on all threads of the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Read`]; [`Error::OtherKind`] or [`Error::NotLabels`] if the file is something else or damaged.
    pub fn load(path: impl AsRef<Path>) -> Result<Labels, Error> {
        let path = path.as_ref();
        let damaged = |reason: String| Error::NotLabels { path: path.to_owned(), reason };
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let (file, len, head) = open(path, |_, reason| damaged(reason.to_owned()))?;
        let Some(head) = head.first_chunk().filter(|_| recognise(&head).is_some_and(|(what, _)| what == "labels"))
        else {
            return Err(match recognise(&head) {
                Some((found, _)) if found != "labels" => {
                    let needed = "labels are needed, which `kmers label` writes".to_owned();
                    Error::OtherKind { path: path.to_owned(), found, needed }
                }
                _ => damaged("`kmers label` did not write it, or it is cut".to_owned()),
            });
        };
        let (header, parameters) = parse(head).map_err(|error| damaged(error.to_string()))?;
        let available = len.saturating_sub(HEADER_BYTES as u64);
        let mut file = Wide::new(file).map_err(failed)?;
        let payload = file::read_words::<u64>(&mut file, header.payload_bytes / 8, available, HEADER_BYTES as u64)
            .and_then(|words| header.verify(head, words.as_slice()).map(|()| words))
            .map_err(|error| damaged(error.to_string()))?;
        let function = file::read_from::<StaticFunction<u8>>(&mut file, available.saturating_sub(header.payload_bytes))
            .map_err(|error| damaged(error.to_string()))?;
        let mut after = Vec::new();
        file.take(1).read_to_end(&mut after).map_err(failed)?;
        let labels = of_payload(payload.as_slice(), parameters, function).filter(|_| after.is_empty());
        labels.ok_or_else(|| damaged("its parts do not agree: it is damaged, copy or build it again".to_owned()))
    }

    /// Writes a file. A regular file of that name is replaced at once at the end.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let mut names: Vec<u8> = self.genomes.iter().flat_map(|name| name.bytes().chain([0])).collect();
        names.resize(names.len().next_multiple_of(8), 0);
        let payload: Vec<u64> = self.kmers.iter().copied().chain(bytemuck::pod_collect_to_vec(&names)).collect();
        let mut fields = [0; FIELDS];
        fields[..3].copy_from_slice(&[self.k.get().into(), self.genomes.len() as u64, self.seed]);
        let header = Header { payload_bytes: 8 * payload.len() as u64, fields, checksum: 0 };
        let checksum = Header::checksum_of(&header.to_bytes(FileKind::KMERS_LABELS), &payload);
        let header = Header { checksum, ..header }.to_bytes(FileKind::KMERS_LABELS);
        write(path.as_ref(), |to| {
            to.write_all(&header)?;
            to.write_all(bytemuck::cast_slice(&payload))?;
            self.function.write_to(to).map_err(std::io::Error::other)
        })
    }
}

/// Parameters of the header.
struct Parameters {
    k: K,
    genomes: usize,
    seed: u64,
}

/// Parses a header, and checks all of it except the checksum.
fn parse(head: &HeaderBytes) -> Result<(Header, Parameters), FileError> {
    let header = Header::parse(head, FileKind::KMERS_LABELS)?;
    let [k, genomes, seed, unused @ ..] = header.fields;
    let invalid = |field, value| Err(FileError::InvalidHeader { field, value });
    let bases = K::new(u32::try_from(k).unwrap_or(u32::MAX));
    let Ok(bases) = bases else { return invalid("bases per k-mer", k) };
    if seed != 0 && !bases.is_long() {
        return invalid("seed of keys", seed);
    }
    if !(1..=MOST_GENOMES as u64).contains(&genomes) {
        return invalid("number of genomes", genomes);
    }
    if let Some(value) = unused.into_iter().find(|&value| value != 0) {
        return invalid("unused parameters", value);
    }
    match header.payload_bytes.is_multiple_of(8) && header.payload_bytes > 8 * genomes {
        true => Ok((header, Parameters { k: bases, genomes: genomes as usize, seed })),
        false => invalid("payload bytes", header.payload_bytes),
    }
}

/// Joins the parts of a file; `None` if they do not agree. The payload has more words than there are genomes.
fn of_payload(payload: &[u64], parameters: Parameters, function: StaticFunction<u8>) -> Option<Labels> {
    let Parameters { k, genomes, seed } = parameters;
    let (kmers, names) = payload.split_at(genomes + 1);
    let names = std::str::from_utf8(bytemuck::cast_slice(names)).ok()?;
    let mut names = names.split_terminator('\0');
    let genomes: Vec<String> = names.by_ref().take(genomes).map(str::to_owned).collect();
    let sum = kmers.iter().try_fold(0u64, |sum, &kmers| sum.checked_add(kmers));
    let is_sound = genomes.len() + 1 == kmers.len()
        && names.all(str::is_empty)
        && sum == Some(function.len())
        && function.layout().value_bits() == (genomes.len() as u64).ilog2() + 1;
    is_sound.then(|| Labels { k, genomes, kmers: kmers.to_vec(), seed, function })
}
