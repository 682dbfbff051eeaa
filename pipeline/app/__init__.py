"""What every face of redfirst calls: start, resume, approve, reject and abandon runs, and what is said of them.

Start reading at `start.start`; `answer` has what a person does with a run, `run_config` and `trust_requests` what was
asked for and what of it needs trust, `documents` what is said of runs.
"""
