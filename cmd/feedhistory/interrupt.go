package main

import "time"

// grace is the time for a verb to end properly after an interrupt. Polls and servers need
// less.
const grace = 30 * time.Second
