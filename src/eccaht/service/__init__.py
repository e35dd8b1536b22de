"""The service: plants watched round the clock, fed over the network, shown on a page (extra [live])."""
