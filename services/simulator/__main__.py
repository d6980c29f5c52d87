from services.simulator.app import main

main()
