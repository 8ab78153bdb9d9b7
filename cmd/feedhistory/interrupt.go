package main

import "time"

// grace is the time that a verb has to end properly after an interrupt. Polls and servers
// need less.
const grace = 30 * time.Second
