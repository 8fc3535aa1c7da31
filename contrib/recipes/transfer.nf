// Input comes from an endpoint of a Carrack service, output goes back there, both verified:
//
//     nextflow run transfer.nf --from @lab:/raw/run42 --to @lab:/results/run42 -resume
//
// Exit codes 10, 30 and 75 (the network, a signal) are tried again: the same command goes on where it stood.
nextflow.enable.dsl = 2

params.from = null
params.to = null

process fetch {
    errorStrategy { task.exitStatus in [10, 30, 75] ? 'retry' : 'terminate' }
    maxRetries 5

    output:
    path 'in/*'

    script:
    "carrack copy ${params.from}/ in"
}

process lines {
    input:
    path file

    output:
    path "${file.name}.count"

    script:
    "wc -l <${file} >${file.name}.count"
}

process send {
    errorStrategy { task.exitStatus in [10, 30, 75] ? 'retry' : 'terminate' }
    maxRetries 5

    input:
    path files

    script:
    "carrack copy --copy-links ${files} ${params.to}/"
}

workflow {
    fetch | flatten | lines | collect | send
}
