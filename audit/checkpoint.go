package audit

const checkpointEach = 1000 // records
