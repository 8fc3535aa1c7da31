//! The flags of globus-url-copy, as its own help has them (10.12): for a line that calls Carrack by that name.

use super::{ForeignFlag, always, ours, refused, taken_as};

const GUC: &str = "globus-url-copy";
const NO_GRIDFTP: &str = "GridFTP is not spoken, and so nothing of it is set";
const NO_CERTIFICATES: &str = "you log in by ssh; certificates are not used";

const fn without_effect(names: &'static [&'static str], why: &'static str) -> ForeignFlag {
    always(names, GUC, why)
}

const fn taken(names: &'static [&'static str], ours: &'static str, why: &'static str) -> ForeignFlag {
    taken_as(names, GUC, why, ours)
}

/// All of them. The first name of a row is what the translation knows it by.
pub const GLOBUS_URL_COPY_FLAGS: &[ForeignFlag] = &[
    taken(&["-help", "-usage"], "carrack --help", "the help is printed"),
    taken(&["-version", "-versions"], "carrack --version", "the version is printed"),
    taken(&["-c", "-continue-on-error"], "", "further lines of -f are copied after one that failed"),
    refused(&["-a", "-ascii"], GUC, "files are copied as they are, byte for byte"),
    without_effect(&["-b", "-binary"], "files are copied as they are, byte for byte"),
    taken(&["-f", "-filename"], "", "pairs of places are read from the file, one a line").word(),
    without_effect(&["-cd", "-create-dest"], "missing directories above the destination are made"),
    taken(&["-r", "-recurse"], "", "subdirectories are copied, too"),
    without_effect(&["-fast", "-fast-data-channels"], "data connections are made once, and used for all files"),
    ours(
        &["-t", "-transfer-time"],
        GUC,
        "a copy that is cut off is no measurement",
        "carrack bench net HOST measures a path",
    )
    .word(),
    taken(&["-q", "-quiet"], "-q", "only errors are printed"),
    taken(&["-v", "-verbose"], "", "places and names are printed"),
    taken(&["-vb", "-verbose-perf"], "", "places, names, bytes and rates are printed"),
    taken(&["-dbg", "-debugftp"], "-v", "the report is printed"),
    without_effect(&["-rst", "-restart"], "lost connections are made again, and the copy goes on"),
    taken(&["-rst-retries", "-restart-retries"], "--retries N", "so many attempts in a row may fail; 0 is for ever")
        .word(),
    without_effect(&["-rst-interval", "-restart-interval"], "the pause grows with each attempt").word(),
    without_effect(&["-rst-timeout", "-restart-timeout"], "attempts are counted, not timed").word(),
    taken(&["-stall-timeout", "-st"], "--io-timeout TIME", "a connection that is silent for so long is made again")
        .word(),
    ours(
        &["-df", "-dumpfile"],
        GUC,
        "a copy goes on by itself when it is started again",
        "carrack copy --failed-list FILE",
    )
    .word(),
    ours(&["-do", "-dump-only"], GUC, "what would be copied is shown otherwise", "carrack copy -n -v").word(),
    taken(&["-rp", "-relative-paths"], "HOST:PATH", "paths at a host begin in the login directory, and at / with %2F"),
    without_effect(&["-s", "-subject"], NO_CERTIFICATES).word(),
    without_effect(&["-ss", "-source-subject"], NO_CERTIFICATES).word(),
    without_effect(&["-ds", "-dest-subject"], NO_CERTIFICATES).word(),
    without_effect(
        &["-tcp-bs", "-tcp-buffer-size"],
        "the kernel chooses the buffers of TCP; carrack doctor says whether they are large enough",
    )
    .word(),
    without_effect(&["-bs", "-block-size"], "the size of reads and writes is chosen").word(),
    taken(&["-p", "-parallel"], "--streams N", "so many data connections are used for all files together").word(),
    taken(&["-notpt", "-no-third-party-transfers"], "--link tunnel", "data goes through this host"),
    without_effect(&["-nodcau", "-no-data-channel-authentication"], "data connections are always authenticated"),
    without_effect(&["-dcsafe", "-data-channel-safe"], "data connections are always encrypted and verified"),
    without_effect(&["-dcpriv", "-data-channel-private"], "data connections are always encrypted and verified"),
    refused(&["-off", "-partial-offset"], GUC, "files are copied whole").word(),
    refused(&["-len", "-partial-length"], GUC, "files are copied whole").word(),
    taken(&["-list", "-list-url"], "carrack ls", "the names in a directory are printed").word(),
    without_effect(&["-stripe", "-striped"], "there is one program at each end"),
    without_effect(&["-striped-block-size", "-sbs"], "there is one program at each end").word(),
    without_effect(&["-ipv6", "-IPv6"], "IPv6 is used where ssh uses it"),
    without_effect(&["-udt", "-u"], "data travels over TCP"),
    without_effect(&["-no-g2", "-nogridftp2", "-g2", "-gridftp2"], NO_GRIDFTP),
    without_effect(&["-allo", "-allocate", "-no-allo", "-no-allocate"], "room is reserved as a file grows"),
    without_effect(&["-dp", "-delayed-pasv"], NO_GRIDFTP),
    refused(&["-mn", "-module-name"], GUC, NO_GRIDFTP).word(),
    refused(&["-mp", "-module-parameters"], GUC, NO_GRIDFTP).word(),
    refused(&["-smn", "-src-module-name"], GUC, NO_GRIDFTP).word(),
    refused(&["-smp", "-src-module-parameters"], GUC, NO_GRIDFTP).word(),
    refused(&["-dmn", "-dst-module-name"], GUC, NO_GRIDFTP).word(),
    refused(&["-dmp", "-dst-module-parameters"], GUC, NO_GRIDFTP).word(),
    without_effect(&["-aa", "-authz-assert"], NO_CERTIFICATES).word(),
    without_effect(&["-saa", "-src-authz-assert"], NO_CERTIFICATES).word(),
    without_effect(&["-daa", "-dst-authz-assert"], NO_CERTIFICATES).word(),
    without_effect(&["-cache-aa", "-cache-authz-assert"], NO_CERTIFICATES),
    without_effect(&["-cache-saa", "-cache-src-authz-assert"], NO_CERTIFICATES),
    without_effect(&["-cache-daa", "-cache-dst-authz-assert"], NO_CERTIFICATES),
    without_effect(&["-pipeline", "-pp"], "small files travel in bundles, and no command waits for another"),
    without_effect(&["-ppq", "-pipelineq"], "small files travel in bundles, and no command waits for another").word(),
    taken(&["-preserve"], "", "times are kept"),
    taken(&["-cp", "-copy-perms"], "", "permissions are kept"),
    taken(
        &["-concurrency", "-cc"],
        "--streams N",
        "with -p N there are N times as many data connections, for all files together",
    )
    .word(),
    without_effect(&["-nl-bottleneck", "-nlb"], "the report says what limited the copy"),
    without_effect(&["-nli", "-nl-interval"], "the report says what limited the copy").word(),
    ours(&["-src-pipe", "-SP"], GUC, "a program is read through standard input", "PROGRAM | carrack - DST").word(),
    ours(&["-dst-pipe", "-DP"], GUC, "a program is fed through standard output", "carrack SRC - | PROGRAM").word(),
    ours(
        &["-pipe", "-P"],
        GUC,
        "programs are read and fed through standard input and output",
        "PROGRAM | carrack - DST, or carrack SRC - | PROGRAM",
    )
    .word(),
    refused(&["-dcstack", "-data-channel-stack"], GUC, NO_GRIDFTP).word(),
    refused(&["-fsstack", "-file-system-stack"], GUC, NO_GRIDFTP).word(),
    refused(&["-src-dcstack", "-source-data-channel-stack"], GUC, NO_GRIDFTP).word(),
    refused(&["-src-fsstack", "-source-file-system-stack"], GUC, NO_GRIDFTP).word(),
    refused(&["-dst-dcstack", "-dest-data-channel-stack"], GUC, NO_GRIDFTP).word(),
    refused(&["-dst-fsstack", "-dest-file-system-stack"], GUC, NO_GRIDFTP).word(),
    without_effect(&["-cred"], NO_CERTIFICATES).word(),
    without_effect(&["-src-cred", "-sc"], NO_CERTIFICATES).word(),
    without_effect(&["-dst-cred", "-dc"], NO_CERTIFICATES).word(),
    without_effect(&["-data-cred"], NO_CERTIFICATES).word(),
    refused(&["-af", "-alias-file"], GUC, "a place is on one host").word(),
    refused(&["-MC", "-multicast"], GUC, "a copy has one destination").word(),
    refused(&["-CP", "-plugin", "-X", "-extentions"], GUC, NO_GRIDFTP).word(),
    taken(&["-sync"], "--compare size, then --update", "only files that differ are copied, as -sync-level says"),
    taken(&["-sync-level"], "--no-clobber, --compare, --update", "by which files differ").word(),
    without_effect(&["-checksum-alg", "-algo"], "each file is verified by BLAKE3 before it has its name").word(),
    without_effect(&["-verify-checksum", "-checksum"], "each file is verified by BLAKE3 before it has its name"),
];
