//! The flags of bbcp, as its help has them (14.04, and what 17.12 adds): for a line that calls Carrack by that name.

use super::{ForeignFlag, WordKind, always, ours, refused, taken_as};

const BBCP: &str = "bbcp";

const fn without_effect(names: &'static [&'static str], why: &'static str) -> ForeignFlag {
    always(names, BBCP, why)
}

const fn taken(names: &'static [&'static str], ours: &'static str, why: &'static str) -> ForeignFlag {
    taken_as(names, BBCP, why, ours)
}

/// All of them. The first name of a row is what the translation knows it by.
pub const BBCP_FLAGS: &[ForeignFlag] = &[
    taken(
        &["-a", "--append"],
        "--no-clobber, and then --compare checksum",
        "a copy that was interrupted goes on, and files that are the same are no error",
    )
    .perhaps(WordKind::NoFlag),
    without_effect(&["-A", "--mkdir"], "missing directories above the target are made"),
    without_effect(&["-b", "--buffers"], "buffers are chosen while the copy runs").word(),
    without_effect(&["-B", "--buffsz"], "the size of reads and writes is chosen").word(),
    taken(&["-c", "--compress"], "--compress", "zstd compresses, as hard as the path leaves time for; 0 turns it off")
        .perhaps(WordKind::Number),
    taken(&["-C", "--config"], "", "the flags in the file are read in its place").word(),
    taken(&["-d", "--dirbase"], "--relative", "what follows the directory is kept in the target's path").word(),
    taken(&["-D", "--debug"], "-v", "the report is printed"),
    without_effect(&["-e"], "each file is verified by BLAKE3 before it has its name"),
    taken(&["-E", "--checksum"], "", "the MD5 of files of this host is printed, or compared before anything is sent")
        .word(),
    taken(&["-f", "--force"], "", "what exists is replaced, once the new file is whole and verified"),
    without_effect(&["-F", "--nofschk"], "a file that does not fit fails by itself"),
    without_effect(&["-g", "--gross"], "empty trees are copied, too"),
    taken(&["-h", "--help"], "", "the help is printed"),
    taken(&["-i", "--idfile"], "-e 'ssh -i KEY'", "ssh is given the key").word(),
    taken(&["-I", "--infiles"], "", "the sources are read from the file, one a line").word(),
    without_effect(
        &["-k", "--keep"],
        "what has arrived of an unfinished file is kept beside its name, and gone on with",
    ),
    without_effect(&["-K"], "a name keeps its old file until the new one is whole"),
    taken(&["-l", "--logfile"], "", "what is said on standard error is appended to the file").word(),
    ours(&["-L"], BBCP, "NetLogger is not spoken", "carrack copy --timeline FILE writes what both ends measure").word(),
    taken(
        &["-m", "--mode"],
        "--chmod D…,F…",
        "directories and files get these permissions; the bits above 777 are left out",
    )
    .word(),
    without_effect(&["-n", "--nodns"], "no name of a host is looked up that was not typed"),
    taken(&["-N", "--pipe"], "-", "a program or a named pipe is read, or written to").word(),
    without_effect(&["-o", "--order"], "each file gets its name when all of it is there, whatever the order"),
    taken(&["-O", "--omit", "--omit-dups"], "--no-clobber", "files that exist are left alone, and no error"),
    taken(&["-p", "--preserve"], "--owner --group", "permissions, times and owners are kept"),
    taken(&["-P", "--progress"], "", "a line every so many seconds says how much is done").word(),
    without_effect(&["-q", "--qos"], "packets are not marked").word(),
    taken(&["-r", "--recursive"], "", "directories are copied; links in them are copied as links"),
    taken(&["-R", "--realtime"], "--growing follow", "a file that grows is followed until it rests")
        .perhaps(WordKind::Settings),
    taken(&["-s", "--streams"], "--streams N", "so many data connections are used").word(),
    taken(&["-S"], "-e COMMAND", "ssh and its flags are taken, the program at the far side is Carrack's own").word(),
    taken(&["-T"], "-e COMMAND", "ssh and its flags are taken, the program at the far side is Carrack's own").word(),
    taken(&["-t", "--timelimit"], "--deadline TIME", "the copy ends then, and can be gone on with").word(),
    taken(&["-v", "--verbose"], "", "each file and its rate are told"),
    taken(&["-V", "--vverbose"], "-v", "the report is printed, and what has no effect"),
    without_effect(&["-u", "--unbuffered"], "the page cache is left alone where that pays").word(),
    without_effect(&["-U"], "the kernel chooses the buffers of TCP; carrack doctor says whether they are large enough")
        .word(),
    without_effect(
        &["-w", "-W", "--windowsz"],
        "the kernel chooses the buffers of TCP; carrack doctor says whether they are large enough",
    )
    .word(),
    taken(&["-x", "--xfrrate"], "--bwlimit RATE", "the rate is no higher").word(),
    without_effect(&["-y", "--sync"], "what is copied is on stable storage before it counts as there")
        .perhaps(WordKind::Letters("d")),
    without_effect(&["-z", "--reverse"], "which side connects to the other is found out"),
    taken(&["-Z", "--port"], "--ports LO-HI", "data connections use these ports").word(),
    taken(&["-4", "--ipv4"], "-e 'ssh -4'", "ssh uses IPv4, and data goes to the address that ssh uses")
        .perhaps(WordKind::Letters("cst")),
    taken(&["-~", "--ptime"], "--atimes", "times are kept, and the permissions are those of a new file"),
    taken(&["-@", "--symlinks", "--links"], "--copy-links", "links are copied as links, or what they lead to is")
        .word(),
    refused(
        &["-+", "--readable"],
        BBCP,
        "what cannot be read is named, and the exit code says so; everything else is copied",
    ),
    refused(&["-^", "--omit-emptydirs"], BBCP, "empty directories are copied, too"),
    refused(&["--omit-inerrs"], BBCP, "what fails is named, and the exit code says so; everything else is copied"),
    refused(&["--omit-outerrs"], BBCP, "what fails is named, and the exit code says so; everything else is copied"),
    taken(&["-$", "--license"], "", "the licence is named"),
    taken(&["-#", "--version"], "carrack --version", "the version is printed"),
];
